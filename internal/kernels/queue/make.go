package queue

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// kind is a kind of queue.
type kind struct {
	name   string // name of the operation that creates the queue, first form
	doc    string
	attrs  []string // besides container and shared_name
	store  func(spec) store
	ranked bool // whether the first component is a priority, which the attributes do not list
	padded bool // whether the components of a batch are padded to one shape
	atOnce bool // whether a batch is dequeued only once it is complete
}

var fifo = &kind{
	name: "FIFOQueue", doc: "Returns a handle to a first-in, first-out queue.",
	attrs: []string{"component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []", "capacity: int = -1"},
	store: newRing,
}

var padding = &kind{
	name: "PaddingFIFOQueue", doc: "Returns a handle to a first-in, first-out queue that pads the elements of a batch " +
		"to the largest one.",
	attrs: fifo.attrs, store: newRing, padded: true,
}

var shuffle = &kind{
	name: "RandomShuffleQueue", doc: "Returns a handle to a queue that dequeues in random order and keeps " +
		"min_after_dequeue elements until it is closed.",
	attrs: append(slices.Clone(fifo.attrs), "min_after_dequeue: int = 0", "seed: int = 0", "seed2: int = 0"),
	store: newBag,
}

var priority = &kind{
	name: "PriorityQueue", doc: "Returns a handle to a queue that dequeues elements in ascending order of their first component.",
	attrs: []string{"component_types: list(type) >= 0 = []", "shapes: list(shape) >= 0", "capacity: int = -1"},
	store: newPriorities, ranked: true, atOnce: true,
}

func init() {
	for _, k := range []*kind{fifo, padding, shuffle, priority} {
		attrs := append(slices.Clone(k.attrs), "container: string = ''", "shared_name: string = ''")
		kernel.RegisterNew(opdef.Def{
			Name: k.name, Doc: k.doc, Out: []string{"handle: Ref(string)"}, Attrs: attrs, Stateful: true, Shape: resource.NamesShape,
		}, k.make)
		kernel.RegisterNew(opdef.Def{
			Name: k.name + "V2", Doc: k.doc, Out: []string{"handle: resource"}, Attrs: attrs, Stateful: true, Shape: opdef.ScalarShape,
		}, k.make)
	}
}

// spec holds the attributes of a node that creates a queue.
type spec struct {
	types       []tensor.DType
	shapes      []tensor.PartialShape // of the components; nil if not specified
	capacity    int
	minAfter    int // elements that the queue retains until it is closed
	seed, seed2 int
}

func (k *kind) make(c *kernel.Construction) (kernel.Kernel, error) {
	s, err := k.spec(c.Attrs)
	if err != nil {
		return nil, err
	}
	op := c.Op.Name
	return resource.Maker[*Queue]{
		Create: func(_ *kernel.Context, name string) (*Queue, error) {
			if err := k.check(s, name); err != nil {
				return nil, err
			}
			return newQueue(name, k, s), nil
		},
		Verify: func(q *Queue) error { return q.verify(op, s) },
	}.Kernel(c)
}

func (k *kind) spec(attrs opdef.Attrs) (spec, error) {
	s := spec{
		//sizedmake:ok an attribute, at the construction
		types: attrs.Types("component_types"), shapes: slices.Clone(attrs.Shapes("shapes")), capacity: attrs.Int("capacity"),
		minAfter: attrs.Int("min_after_dequeue"), seed: attrs.Int("seed"), seed2: attrs.Int("seed2"),
	}
	if s.capacity < 0 {
		s.capacity = unbounded
	}
	if s.minAfter < 0 {
		return s, status.InvalidArgumentf("min_after_dequeue %d must be >= 0", s.minAfter)
	}
	if k == shuffle && s.minAfter >= s.capacity {
		return s, status.InvalidArgumentf("min_after_dequeue %d must be < capacity %d", s.minAfter, s.capacity)
	}
	for i, shape := range s.shapes {
		switch _, full := shape.Full(); {
		case full:
		case !shape.RankKnown() && k.padded:
			return s, status.InvalidArgumentf("shape %v must have known rank.", shape)
		case !shape.RankKnown():
			s.shapes[i] = shapefn.Of() // as in TensorFlow
		case !k.padded:
			return s, status.InvalidArgumentf("Shape %v is not fully defined", shape)
		}
	}
	if k.ranked {
		s.types = append([]tensor.DType{tensor.Int64}, s.types...)
		if len(s.shapes) > 0 {
			s.shapes = append([]tensor.PartialShape{shapefn.Of()}, s.shapes...)
		}
	}
	return s, nil
}

// check returns the errors that TensorFlow reports when it creates the queue.
func (k *kind) check(s spec, name string) error {
	switch {
	case len(s.types) == 0:
		return status.InvalidArgumentf("Empty component types for queue %s", name)
	case len(s.shapes) > 0 && len(s.shapes) != len(s.types):
		return status.InvalidArgumentf("Different number of component types.  Types: %s, Shapes: %s",
			opdef.JoinTypes(s.types), listShapes(s.shapes))
	case k.padded && len(s.shapes) != len(s.types):
		return status.InvalidArgumentf("Shapes must be provided for all components, but received %d dtypes and %d shapes.",
			len(s.types), len(s.shapes))
	}
	return nil
}

func listShapes(all []tensor.PartialShape) string {
	//sizedmake:ok the number of components
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = s.String()
	}
	//sizedmake:ok the number of components
	return "[" + strings.Join(texts, ", ") + "]"
}

// verify compares an existing queue with the attributes of a node of the given operation.
func (q *Queue) verify(op string, s spec) error {
	shared := "Shared queue '" + q.name + "' has "
	switch {
	case strings.TrimSuffix(op, "V2") != q.kind.name:
		return status.InvalidArgumentf("Expected %s, found %s", q.kind.name, op)
	case s.capacity != q.capacity:
		return status.InvalidArgumentf(shared+"capacity %d but requested capacity was %d", q.capacity, s.capacity)
	case s.minAfter != q.minAfter:
		return status.InvalidArgumentf(shared+"min_after_dequeue %d but requested min_after_dequeue was %d.", q.minAfter, s.minAfter)
	case (s.seed != 0 || s.seed2 != 0) && (s.seed != q.seed || s.seed2 != q.seed2):
		return status.InvalidArgumentf(shared+"random seeds (%d, %d) but requested seeds are (%d, %d).",
			q.seed, q.seed2, s.seed, s.seed2)
	case !slices.Equal(s.types, q.types):
		return status.InvalidArgumentf(shared+"component types %s but requested component types were %s",
			opdef.JoinTypes(q.types), opdef.JoinTypes(s.types))
	case q.kind.ranked && len(s.shapes) == 0:
		// TensorFlow requires the shape of the priority even in this case
		return status.InvalidArgumentf("%scomponent shapes [] but requested component shapes were [[]]", shared)
	case !slices.EqualFunc(s.shapes, q.shapes, q.kind.sameShape):
		return status.InvalidArgumentf(shared+"component shapes %s but requested component shapes were %s",
			listShapes(q.shapes), listShapes(s.shapes))
	}
	return nil
}

// sameShape compares the shapes of a component that two nodes declare.
func (k *kind) sameShape(a, b tensor.PartialShape) bool {
	if k.padded {
		return a.Compatible(b)
	}
	return a.Equal(b)
}
