package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

const (
	epochTime   = 20 * time.Second // an epoch ends after it, or when the variable was lost
	maxUnknown  = 6                // unknown outcomes in an epoch: more take too long to check
	opTimeout   = 15 * time.Second
	checkTime   = 30 * time.Second
	parallelism = 4 // clients
)

// clients use a counter and a queue on a parameter server, in epochs. Each epoch has objects of its
// own, so that a late request of an earlier one changes nothing.
type clients struct {
	targets  []string // of the workers
	log      *slog.Logger
	clearing *atomic.Int64 // starts and ends of resets of the cluster
	checks   sync.WaitGroup

	last    atomic.Int64 // time of the last success, Unix ns
	ops     atomic.Int64
	unknown atomic.Int64
	epochs  atomic.Int64
	checked atomic.Int64 // histories that were checked
	skipped atomic.Int64 // epochs during which the cluster was reset
	open    atomic.Int64 // histories for which the time of the check did not suffice

	mu     sync.Mutex
	broken []string // histories that no order explains, and wrong sums; guarded by mu
}

// objects is the graph of an epoch.
type objects struct {
	graph   *graph.Graph
	init    *graph.Node
	add     *graph.Node
	read    op.Output
	value   op.Output // placeholder of enqueue
	enqueue *graph.Node
	dequeue op.Output
}

func newObjects(epoch int64) (*objects, error) {
	s := op.NewScope().WithDevice("/job:ps/task:1")
	o := &objects{}
	v := train.NewVariable(s, fmt.Sprintf("counter_%d", epoch), tensor.Shape{}, tensor.Int64, train.Zeros, train.Resource())
	o.init = train.VariablesInitializer(s, v)
	o.add = v.AssignAdd(s, op.Const(s, int64(1)))
	o.read = op.Identity(s, v.Read(s))
	// a queue that was lost in a restart looks like an empty one: a read of the variable tells
	alive := s.WithControlDependencies(v.Read(s).Node)
	q := op.FIFOQueueV2(s, []tensor.DType{tensor.Int64}, op.FIFOQueueV2SharedName(fmt.Sprintf("queue_%d", epoch)), op.FIFOQueueV2Capacity(1000))
	o.value = op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))
	o.enqueue = op.QueueEnqueueV2(alive, q, []op.Output{o.value})
	o.dequeue = op.QueueDequeueV2(alive, q, []tensor.DType{tensor.Int64})[0]
	var err error
	o.graph, err = s.Finalize()
	return o, err
}

// run runs epochs until ctx ends.
func (c *clients) run(ctx context.Context) {
	for ctx.Err() == nil {
		c.epoch(ctx, c.epochs.Add(1))
	}
	c.checks.Wait()
}

// epoch runs all clients on new objects.
func (c *clients) epoch(ctx context.Context, number int64) {
	o, err := newObjects(number)
	if err != nil {
		c.fail(fmt.Sprintf("the graph: %v", err))
		pause(ctx, time.Second)
		return
	}
	for {
		sess, err := c.session(0, o)
		if err == nil {
			call, cancel := context.WithTimeout(ctx, opTimeout)
			err = sess.Exec(call, nil, o.init)
			cancel()
			sess.Close()
		}
		if err == nil {
			break
		}
		if pause(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return
		}
	}
	counter, queue := &history{start: time.Now()}, &history{start: time.Now()}
	cleared := c.clearing.Load()
	ctx, end := context.WithTimeout(ctx, epochTime)
	defer end()
	var running sync.WaitGroup
	e := &epochState{clients: c, objects: o, counter: counter, queue: queue, end: end, number: number}
	for i := range parallelism {
		r := rand.New(rand.NewPCG(uint64(number), uint64(i)))
		running.Go(func() { e.client(ctx, i, r) })
	}
	running.Wait()
	// A reset removes the queue, and an operation that runs meanwhile may create an empty one. A
	// reset that has begun before the epoch counts when it ends.
	if c.clearing.Load() != cleared || cleared%2 != 0 {
		c.skipped.Add(1)
		return
	}
	c.checks.Go(func() {
		c.check(number, "counter", counter, counterModel)
		c.check(number, "queue", queue, queueModel)
	})
}

func (c *clients) session(i int, o *objects) (*weft.Session, error) {
	return weft.NewSession(c.targets[i%len(c.targets)], o.graph,
		weft.WithDeviceFilters("/job:ps", fmt.Sprintf("/job:worker/task:%d", i%len(c.targets))))
}

func (c *clients) check(number int64, name string, h *history, m porcupine.Model) {
	result, n := h.check(m, checkTime)
	c.checked.Add(1)
	switch result {
	case porcupine.Illegal:
		c.fail(fmt.Sprintf("epoch %d: no order explains the %d operations on the %s", number, n, name))
	case porcupine.Unknown:
		c.open.Add(1)
	case porcupine.Ok:
	}
}

func (c *clients) fail(what string) {
	c.log.Error("something is wrong", "what", what)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = append(c.broken, what)
}

// epochState is one epoch.
type epochState struct {
	*clients
	objects        *objects
	counter, queue *history
	end            context.CancelFunc
	number         int64
	next           atomic.Int64 // last number that was put into the queue
	misses         atomic.Int64 // unknown outcomes
}

// client makes operations until the epoch ends.
func (e *epochState) client(ctx context.Context, i int, r *rand.Rand) {
	var sess *weft.Session
	for ctx.Err() == nil {
		if sess == nil {
			var err error
			if sess, err = e.session(i, e.objects); err != nil {
				pause(ctx, 100*time.Millisecond)
				continue
			}
		}
		if err := e.operation(ctx, sess, i, r); err != nil {
			lost := sess
			e.checks.Go(func() { lost.Close() })
			sess = nil
		}
		pause(ctx, time.Duration(10+r.IntN(60))*time.Millisecond)
	}
	if sess != nil {
		sess.Close()
	}
}

// operation makes one operation and records it. An operation that has begun is not cut short by the
// end of the epoch.
func (e *epochState) operation(ctx context.Context, sess *weft.Session, i int, r *rand.Rand) error {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout)
	defer cancel()
	h, in, out := e.counter, input{}, output{}
	called := time.Now()
	var err error
	switch k := r.IntN(10); {
	case k < 4:
		in.kind = add
		err = sess.Exec(call, nil, e.objects.add)
	case k < 6:
		in.kind = read
		out.value, err = fetch(call, sess, e.objects.read)
	case k < 8:
		h, in = e.queue, input{enqueue, e.next.Add(1)}
		err = sess.Exec(call, weft.Feeds{e.objects.value: tensor.Scalar(in.value)}, e.objects.enqueue)
	default:
		h, in.kind = e.queue, dequeue
		short, cancel := context.WithTimeout(call, 2*time.Second)
		out.value, err = fetch(short, sess, e.objects.dequeue)
		cancel()
	}
	e.ops.Add(1)
	if err == nil {
		e.last.Store(time.Now().UnixNano())
	} else {
		out = output{unknown: true}
		e.unknown.Add(1)
		if e.misses.Add(1) >= maxUnknown || status.CodeOf(err) == status.FailedPrecondition || status.CodeOf(err) == status.NotFound {
			e.end() // the variable was lost, or the history becomes hard to check
		}
	}
	if err == nil || in.kind != read {
		h.record(i, in, out, called)
	}
	return err
}

func fetch(ctx context.Context, sess *weft.Session, o op.Output) (int64, error) {
	got, err := sess.Fetch(ctx, nil, o)
	if err != nil {
		return 0, err
	}
	return got[0].Go().(int64), nil //nolint:forcetypeassert // both outputs are int64
}
