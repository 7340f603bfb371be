package weft

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/sys/callsite"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// lastUnknownScalar is the last version of graph producers that write an unknown shape of a
// placeholder as that of a scalar.
const lastUnknownScalar = 21

// feedSpec is what an output accepts as its feed.
type feedSpec struct {
	output graph.Output
	dtype  tensor.DType
	shape  tensor.PartialShape // of the placeholder; unknown for other nodes
}

// newFeedSpec returns the type of an output and, for a placeholder, its shape attribute.
func newFeedSpec(g *graph.Graph, o graph.Output) (feedSpec, error) {
	switch {
	case o.Node == nil:
		return feedSpec{}, errNoNode
	case o.Index < 0 || o.Index >= len(o.Node.OutTypes):
		return feedSpec{}, status.InvalidArgumentf("%sCannot feed output %d of node %s, which has %d outputs",
			callsite.Find(), o.Index, o.Node.Name, len(o.Node.OutTypes))
	}
	spec := feedSpec{output: o, dtype: o.DType().Base()}
	switch o.Node.Op.Name {
	case "Placeholder", "PlaceholderV2", "PlaceholderWithDefault":
		spec.shape = o.Node.Attrs.Shape("shape")
		if p := g.Versions.Producer; p > 0 && p <= lastUnknownScalar && spec.shape.Rank() == 0 {
			spec.shape = tensor.PartialShape{}
		}
	}
	return spec, nil
}

// newFeedSpecs returns what each of the outputs accepts.
func newFeedSpecs(g *graph.Graph, outputs []graph.Output) ([]feedSpec, error) {
	specs := make([]feedSpec, len(outputs))
	for i, o := range outputs {
		var err error
		if specs[i], err = newFeedSpec(g, o); err != nil {
			return nil, err
		}
	}
	return specs, nil
}

// check returns an InvalidArgument error that names the output and the line of the program if t
// cannot be fed.
func (f *feedSpec) check(t *tensor.Tensor) error {
	switch {
	case !t.Initialized():
		return status.InvalidArgumentf("%sCannot feed Tensor %s: the value is the zero Tensor", callsite.Find(), outputName(f.output))
	case t.DType() != f.dtype:
		return status.InvalidArgumentf("%sCannot feed value of type %s for Tensor %s, which has type %s",
			callsite.Find(), t.DType().Name(), outputName(f.output), f.dtype.Name())
	case !f.shape.CompatibleWith(t.Shape()):
		return status.InvalidArgumentf("%sCannot feed value of shape %s for Tensor %s, which has shape %s",
			callsite.Find(), tuple(t.Shape().Partial()), outputName(f.output), tuple(f.shape))
	}
	return nil
}

// tuple formats a shape as TensorFlow's Python client does in errors about feeds: "(2, ?)", "(3,)".
func tuple(shape tensor.PartialShape) string {
	dims := shape.Dims()
	texts := make([]string, len(dims))
	for i, d := range dims {
		texts[i] = "?"
		if d >= 0 {
			texts[i] = strconv.FormatInt(d, 10)
		}
	}
	text := strings.Join(texts, ", ")
	if len(dims) == 1 {
		text += ","
	}
	return "(" + text + ")"
}
