package state

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/opkit/waitqueue"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	scalar := func(c *opdef.ShapeContext) error {
		c.Out[0] = shapefn.Of()
		return nil
	}
	kernel.RegisterNew(opdef.Def{
		Name: "MutexV2", Doc: "Returns a handle to a mutex.",
		Out:      []string{"resource: resource"},
		Attrs:    []string{"container: string = ''", "shared_name: string = ''"},
		Stateful: true,
		Shape:    scalar,
	}, newMutex)
	kernel.RegisterNew(opdef.Def{
		Name: "MutexLock", Doc: "Acquires a mutex and returns the lock, which is released by ConsumeMutexLock or " +
			"at the end of the step.",
		In:       []string{"mutex: resource"},
		Out:      []string{"mutex_lock: variant"},
		Stateful: true,
		Shape:    scalar,
	}, func(*kernel.Construction) (kernel.Kernel, error) { return lockKernel{}, nil })
	kernel.RegisterFunc(opdef.Def{
		Name: "ConsumeMutexLock", Doc: "Releases a mutex lock.",
		In:       []string{"mutex_lock: variant"},
		Stateful: true,
	}, func(ctx *kernel.Context) error {
		held, ok := tensor.Value[tensor.VariantValue](ctx.Input(0)).Value.(*lock)
		if !ok {
			return status.InvalidArgumentf("Expected input to be a MutexLock")
		}
		held.end()
		return nil
	})
}

// mutex is a lock shared by graphs. Waiters are served in order.
type mutex struct {
	waitqueue.Monitor
	waiters *waitqueue.Queue
	held    bool // guarded by Monitor
}

func makeMutex() *mutex {
	m := new(mutex)
	m.waiters = m.NewQueue(waitqueue.FIFO)
	return m
}

// TypeName names the resource as TensorFlow does.
func (*mutex) TypeName() string { return "N10tensorflow12_GLOBAL__N_15MutexE" }

// lock is a held mutex. The first call of end releases it.
type lock struct {
	mutex *mutex

	mu    sync.Mutex
	ended bool // guarded by mu
	// Cancels the release at the end of the step, which would keep the lock until then: a loop may
	// acquire a mutex without end. Guarded by mu.
	kept func() bool
}

// endWith releases the lock at the end of a step at the latest.
func (l *lock) endWith(step context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = context.AfterFunc(step, l.end)
}

func (l *lock) end() {
	l.mu.Lock()
	first, kept := !l.ended, l.kept
	l.ended = true
	l.mu.Unlock()
	if first {
		kept()
		l.mutex.Change(func() { l.mutex.held = false })
	}
}

// acquire calls done once the mutex is held, possibly before it returns, or with an error when step
// ends before.
func (m *mutex) acquire(step context.Context, done func(error)) {
	m.waiters.Do(step, waitqueue.Operation{
		Try: func() (waitqueue.Outcome, error) {
			if m.held {
				return waitqueue.Blocked, nil
			}
			m.held = true
			return waitqueue.Complete, nil
		},
		Done:      done,
		Cancelled: "MutexLock was cancelled",
	})
}

func newMutex(c *kernel.Construction) (kernel.Kernel, error) {
	container, name, err := names(c)
	if err != nil {
		return nil, err
	}
	h := makeHandle(c, container, name, tensor.HandleElem{})
	var none *mutex
	h.HashCode, h.TypeName, h.Elems = 0, none.TypeName(), nil
	shared := tensor.Scalar(h)
	return kernel.Func(func(ctx *kernel.Context) error {
		_, err := kernel.LookupOrCreateResource(ctx.Device.Resources, container, name, func() (*mutex, error) { return makeMutex(), nil })
		if err == nil {
			ctx.SetOutput(0, shared.Retain())
		}
		return err
	}), nil
}

// lockKernel waits for a mutex.
type lockKernel struct{}

func (lockKernel) Compute(*kernel.Context) error {
	return status.Internalf("MutexLock runs asynchronously")
}

func (lockKernel) ComputeAsync(ctx *kernel.Context, done func(error)) {
	h, err := handle(ctx, 0)
	if err != nil {
		done(err)
		return
	}
	m, err := kernel.LookupResource[*mutex](ctx.Device.Resources, h.Container, h.Name)
	if err != nil {
		done(err)
		return
	}
	step := ctx.Step.Context
	m.acquire(step, func(err error) {
		if err == nil {
			held := &lock{mutex: m}
			held.endWith(step)
			ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: held}))
		}
		done(err)
	})
}
