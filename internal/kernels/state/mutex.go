package state

import (
	"container/list"
	"context"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
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
	mu      sync.Mutex
	held    bool      // guarded by mu
	waiters list.List // of func(), those that have not been withdrawn; guarded by mu
}

// TypeName names the resource as TensorFlow does.
func (*mutex) TypeName() string { return "N10tensorflow12_GLOBAL__N_15MutexE" }

// lock is a held mutex. The first call of end releases it.
type lock struct {
	once  sync.Once
	mutex *mutex
}

func (l *lock) end() { l.once.Do(l.mutex.release) }

// acquire calls granted once the mutex is held, possibly before it returns. The result withdraws a
// waiting call, and returns false if the mutex was already granted.
func (m *mutex) acquire(granted func()) (withdraw func() bool) {
	m.mu.Lock()
	if !m.held {
		m.held = true
		m.mu.Unlock()
		granted()
		return func() bool { return false }
	}
	defer m.mu.Unlock()
	place := m.waiters.PushBack(granted)
	return func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		if place == nil {
			return false
		}
		n := m.waiters.Len()
		m.waiters.Remove(place) // does nothing if it has been served
		place = nil
		return m.waiters.Len() < n
	}
}

// release passes the mutex to the next waiter.
func (m *mutex) release() {
	m.mu.Lock()
	next := m.waiters.Front()
	if next == nil {
		m.held = false
		m.mu.Unlock()
		return
	}
	m.waiters.Remove(next)
	m.mu.Unlock()
	next.Value.(func())()
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
		_, err := kernel.LookupOrCreateResource(ctx.Device.Resources, container, name, func() (*mutex, error) { return &mutex{}, nil })
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
	var once sync.Once
	finish := func(err error) { once.Do(func() { done(err) }) }
	step := ctx.Step.Context
	held := &lock{mutex: m}
	withdraw := m.acquire(func() {
		context.AfterFunc(step, held.end)
		ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: held}))
		finish(nil)
	})
	context.AfterFunc(step, func() {
		if withdraw() {
			finish(status.Cancelledf("MutexLock was cancelled"))
		}
	})
}
