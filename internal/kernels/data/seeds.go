package data

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	anonymous := func(name, doc string, in []string, make func(n *node, ctx *kernel.Context) (kernel.Resource, error)) {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: in, Out: []string{"handle: resource", "deleter: variant"}, Stateful: true, Shape: opdef.ScalarShape,
		}, newAnonymous(make))
	}
	seed := []string{"seed: int64", "seed2: int64"}
	anonymous("AnonymousSeedGenerator", "Creates a generator of the seeds that shuffled datasets use in each iteration.",
		append(seed[:2:2], "reshuffle: bool"), makeSeeds)
	anonymous("AnonymousRandomSeedGenerator", "Creates an anonymous generator of new seeds for each iteration.", seed, makeSeeds)
	anonymous("AnonymousMemoryCache", "Creates an anonymous in-memory cache for the elements of a dataset.", nil,
		func(*node, *kernel.Context) (kernel.Resource, error) { return &cache{}, nil })
	for name, doc := range map[string]string{
		"DeleteSeedGenerator": "Deletes a seed generator.", "DeleteRandomSeedGenerator": "Deletes a seed generator.",
		"DeleteMemoryCache": "Deletes a cache.", "DeleteIterator": "Deletes an iterator.",
	} {
		kernel.RegisterFunc(opdef.Def{
			Name: name, Doc: doc, In: []string{"handle: resource", "deleter: variant"}, Stateful: true,
		}, deleteResource)
	}
	for name, doc := range map[string]string{
		"DummySeedGenerator":    "Creates a placeholder for a seed generator.",
		"DummyMemoryCache":      "Creates a placeholder for a cache.",
		"DummyIterationCounter": "Creates a placeholder for a counter of iterations.",
	} {
		kernel.RegisterFunc(opdef.Def{
			Name: name, Doc: doc, Out: []string{"handle: resource"}, Stateful: true, Shape: opdef.ScalarShape,
		}, func(ctx *kernel.Context) error {
			ctx.SetOutput(0, tensor.Scalar(&tensor.Handle{Device: ctx.Device.Name, Name: "dummy"}))
			return nil
		})
	}
}

// seeds generates the seeds of each iteration of a dataset.
type seeds struct {
	seed, seed2 int64
	reshuffle   bool // each iteration has other seeds

	mu   sync.Mutex
	from stream // guarded by mu
}

func newSeeds(seed, seed2 int64, reshuffle bool) *seeds {
	seed, seed2 = resolveSeeds(seed, seed2)
	return &seeds{seed: seed, seed2: seed2, reshuffle: reshuffle, from: newStream(seed, seed2)}
}

// seeds returns the generator of the node's input, if there is one, or a new one. The attribute
// reshuffle determines whether a new generator returns other seeds for each iteration.
func (n *node) seeds(ctx *kernel.Context, reshuffle string) (*seeds, error) {
	v, err := n.scalars(ctx, "seed", "seed2")
	if err != nil {
		return nil, err
	}
	if n.hasArg("seed_generator") {
		i, _, err := n.InputRange("seed_generator")
		if err != nil {
			return nil, err
		}
		if shared, err := resource.Find[*seeds](ctx, i); err == nil {
			return shared, nil
		}
	}
	return newSeeds(v[0], v[1], n.Attrs.Bool(reshuffle)), nil
}

// TypeName returns TensorFlow's name of the resource.
func (*seeds) TypeName() string { return "N10tensorflow4data20SeedGeneratorManagerE" }

func (s *seeds) next() stream { return newStream(s.pair()) }

// pair returns the next two seeds.
func (s *seeds) pair() (int64, int64) {
	if !s.reshuffle {
		return s.seed, s.seed2
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seed := int64(s.from.next())
	return seed, int64(s.from.next())
}

// state saves the number of seeds drawn, so that a restored iteration continues with the same
// seeds.
func (s *seeds) state(a *archive) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from.state(a)
}

func makeSeeds(n *node, ctx *kernel.Context) (kernel.Resource, error) {
	v, err := n.scalars(ctx, "seed", "seed2")
	if err != nil {
		return nil, err
	}
	reshuffle := true
	if len(n.Inputs) > 2 {
		if reshuffle, err = scalar[bool](n, ctx, "reshuffle"); err != nil {
			return nil, err
		}
	}
	return newSeeds(v[0], v[1], reshuffle), nil
}

var lastAnonymous atomic.Int64

// newAnonymous returns the constructor of kernels that create a new resource in every step. The
// resource exists as long as its handle.
func newAnonymous(make func(*node, *kernel.Context) (kernel.Resource, error)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		n, err := newNode(c)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			r, err := make(n, ctx)
			if err != nil {
				return err
			}
			place := resource.Place{Name: "_anonymous_" + strconv.FormatInt(lastAnonymous.Add(1), 10)}
			h := place.Handle(ctx.Device, r.TypeName())
			h.Resource = r
			ctx.SetOutput(0, tensor.Scalar(h))
			if ctx.NumOutputs() > 1 {
				ctx.SetOutput(1, tensor.Scalar(tensor.VariantValue{}))
			}
			return nil
		}), nil
	}
}

// deleteResource removes a resource from the resource manager. A resource owned by its handle is
// only closed.
func deleteResource(ctx *kernel.Context) error {
	h, err := resource.Handle(ctx, 0)
	if err != nil {
		return err
	}
	if h.Resource == nil {
		return ctx.Device.Resources.DeleteResource(h.Container, h.TypeName, h.Name)
	}
	if ctx.Device.Resources.DeleteResource(h.Container, h.TypeName, h.Name) == nil {
		return nil // it had a string handle
	}
	if c, ok := h.Resource.(kernel.Closer); ok {
		c.Close()
	}
	return nil
}
