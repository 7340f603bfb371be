package data

import (
	"sync"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "OneShotIterator", Doc: "Creates an iterator over the dataset that a function returns. It can be iterated over once.",
		Out: []string{"handle: resource"}, Stateful: true, Shape: opdef.ScalarShape,
		Attrs: append(withSpec("dataset_factory: func"), "container: string = ''", "shared_name: string = ''"),
	}, newOneShot)
}

// oneShot is the kernel of an iterator that is initialized at the first request for its handle. An
// initialization error is permanent.
type oneShot struct {
	node      *node
	place     resource.Place
	resources *kernel.Resources

	mu      sync.Mutex
	started bool          // guarded by mu
	ended   chan struct{} // closed after handle and err are written
	handle  tensor.Tensor
	err     error
}

func newOneShot(c *kernel.Construction) (kernel.Kernel, error) {
	if c.Attrs.String("shared_name") != "" {
		return nil, status.InvalidArgumentf("OneShotIteratorOp does not currently support the 'shared_name' attr.")
	}
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	place, err := resource.PlaceOf(c, false)
	if err != nil {
		return nil, err
	}
	return &oneShot{node: n, place: place, resources: c.Device.Resources, ended: make(chan struct{})}, nil
}

// Compute implements kernel.Kernel.
func (k *oneShot) Compute(ctx *kernel.Context) error {
	return kernel.AsyncFunc(k.ComputeAsync).Compute(ctx)
}

// ComputeAsync implements kernel.Async.
func (k *oneShot) ComputeAsync(ctx *kernel.Context, done func(error)) {
	k.mu.Lock()
	first := !k.started
	k.started = true
	k.mu.Unlock()
	go func() {
		if first {
			k.err = guarded(func() error { return k.start(ctx) })
			close(k.ended)
		}
		select {
		case <-k.ended:
			if k.err == nil {
				ctx.SetOutput(0, k.handle.Retain())
			}
			done(k.err)
		case <-ctx.Context().Done():
			done(status.FromContext(ctx.Context(), "waiting for an iterator"))
		}
	}()
}

func (k *oneShot) start(ctx *kernel.Context) error {
	it := newIterator(k.node.spec())
	f := &captured{Function: k.node.functions["dataset_factory"]}
	d, err := f.variant(it.renew(ctx), nil)
	if err != nil {
		return err
	}
	if err := it.reset(ctx, &d); err != nil {
		return err
	}
	if err := kernel.CreateResource(k.resources, k.place.Container, k.place.Name, it); err != nil {
		return err
	}
	k.handle = tensor.Scalar(k.place.Handle(ctx.Device, it.TypeName()))
	return nil
}

// Close implements kernel.Closer.
func (k *oneShot) Close() {
	_ = k.resources.DeleteResource(k.place.Container, (*Iterator)(nil).TypeName(), k.place.Name)
}
