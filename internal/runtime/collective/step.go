package collective

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Step is the shared state of the collective operations of one step of this task. It implements
// kernel.Collectives.
type Step struct {
	Manager *Manager
	ID      int64
	Self    string // name of the task
	Leader  string // name of the leader's task; "" for this one
	Peers   Peers  // nil if there is no other task
	Buffers *Buffers
}

func (s *Step) leads() bool { return s.Leader == "" || s.Leader == s.Self }

func deviceOf(ctx *kernel.Context) Device {
	d := ctx.Device
	return Device{Name: d.Name, Type: d.Type, Incarnation: d.Incarnation, MemoryLimit: d.MemoryLimit}
}

// Join implements kernel.Collectives.
func (s *Step) Join(ctx *kernel.Context, group kernel.CollectiveGroup, timeout time.Duration) error {
	c, cancel := withTimeout(ctx.Context(), timeout, errTimeoutJoining)
	defer cancel()
	_, err := s.Manager.group(c, s, &Member{Group: group, Device: deviceOf(ctx)})
	return explain(c, err)
}

// Run implements kernel.Collectives.
func (s *Step) Run(ctx *kernel.Context, op *kernel.Collective, in *tensor.Tensor) (tensor.Tensor, error) {
	x, err := s.resolve(ctx, op)
	if err == nil {
		x.in = in
		var out tensor.Tensor
		if out, err = x.run(ctx.Context()); err == nil {
			return out, nil
		}
	}
	s.Manager.forget(s, op.Group.Key)
	return tensor.Tensor{}, err
}

var (
	errTimeoutJoining = status.DeadlineExceededf("Collective has timed out waiting for other workers.")
	errTimeoutRunning = status.DeadlineExceededf("Collective has timed out during execution.")
)

func withTimeout(ctx context.Context, d time.Duration, why error) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, why)
}

// explain returns the reason for which ctx has ended, if it has, instead of an error that follows
// from it.
func explain(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	why := status.FromContext(ctx, "running a collective operation")
	if why.Code == status.DeadlineExceeded {
		return why.Annotate(" (%v)", err)
	}
	return why
}

// resolve finds the group of an operation and agrees with its members on the parameters.
func (s *Step) resolve(ctx *kernel.Context, op *kernel.Collective) (*execution, error) {
	c, cancel := withTimeout(ctx.Context(), op.Timeout, errTimeoutJoining)
	defer cancel()
	device := deviceOf(ctx)
	x := &execution{step: s, op: op, device: &device, source: -1}
	x.key = fmt.Sprintf("%d:%d:%d:%d", op.Group.Key, op.Instance, ctx.At.Frame, ctx.At.Iter)
	var err error
	if op.Joined {
		x.group, err = s.Manager.joinedGroup(s, op.Group)
	} else {
		x.group, err = s.Manager.group(c, s, &Member{Group: op.Group, Device: device})
	}
	if err != nil {
		return nil, explain(c, err)
	}
	if x.rank = x.group.rank(device.Name); x.rank < 0 {
		return nil, status.FailedPreconditionf("Device %s is not a member of collective group %d", device.Name, op.Group.Key)
	}
	x.source, err = s.Manager.instance(c, s, &Instance{
		Group: op.Group.Key, Size: op.Group.Size, Key: op.Instance, Name: op.Name, Kind: op.Kind, DType: op.DType,
		Shape: op.Shape, Device: device.Name, Source: op.Source, Offsets: op.Offsets,
	})
	return x, explain(c, err)
}

// execution is one device's part in an operation.
type execution struct {
	step   *Step
	op     *kernel.Collective
	device *Device
	group  *Group
	rank   int            // of the device
	source int            // rank of the source of a broadcast
	key    string         // of the operation: group, instance, frame and iteration
	in     *tensor.Tensor // borrowed; not initialized on a device that only receives
}

func (x *execution) run(ctx context.Context) (out tensor.Tensor, err error) {
	c, cancel := withTimeout(ctx, x.op.Timeout, errTimeoutRunning)
	defer cancel()
	switch x.op.Kind {
	case kernel.Reduction:
		out, err = x.reduce(c)
	case kernel.Gather:
		out, err = x.gather(c)
	case kernel.ReduceScatter:
		out, err = x.reduceScatter(c)
	case kernel.Broadcast:
		out, err = x.broadcast(c)
	case kernel.AllToAll:
		out, err = x.allToAll(c)
	default:
		err = status.Unimplementedf("%s: collective operations of kind %d are not supported on CPU devices", x.op.Name, x.op.Kind)
	}
	return out, explain(c, err)
}

// send offers a tensor to another device, takes over its reference, and waits until it is taken.
func (x *execution) send(ctx context.Context, key string, t tensor.Tensor) error {
	return x.step.Buffers.Offer(ctx, key, t)
}

// receive returns n elements from another device as a vector with its own reference.
func (x *execution) receive(ctx context.Context, from int, key string, n int) (tensor.Tensor, error) {
	peer := &x.group.Members[from]
	if peer.task() == x.step.Self {
		return x.receiveLocal(ctx, key, n)
	}
	t, err := tensor.Alloc(x.op.DType, tensor.Shape{int64(n)})
	if err != nil {
		return t, err
	}
	if x.step.Peers == nil {
		err = status.Internalf("No worker known as %s", peer.task())
	} else {
		err = x.step.Peers.RecvBuf(ctx, peer.task(), &Buffer{
			StepID: x.step.ID, Key: key, From: *peer, To: x.device.Name, Destination: t.Bytes(),
		})
	}
	if err != nil {
		t.Release()
		return tensor.Tensor{}, err
	}
	return t, nil
}

// receiveLocal takes a tensor that another device of this task offers, without a copy.
func (x *execution) receiveLocal(ctx context.Context, key string, n int) (tensor.Tensor, error) {
	t, err := x.step.Buffers.Take(ctx, key)
	if err != nil {
		return t, err
	}
	if t.DType() != x.op.DType || t.NumElements() != n {
		t.Release()
		return tensor.Tensor{}, status.Internalf("Tensor Size Mismatch: the other device has %d elements of type %v, expected %d of type %v",
			t.NumElements(), t.DType(), n, x.op.DType)
	}
	return t, nil
}

// each calls f concurrently for 0 to n-1 and waits for all calls. The first error, or panic,
// cancels the others.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	for i := range n {
		wg.Go(func() {
			if err := guard.Call("a collective operation", func() error { return f(ctx, i) }); err != nil {
				once.Do(func() {
					first = err
					cancel(err)
				})
			}
		})
	}
	wg.Wait()
	return first
}
