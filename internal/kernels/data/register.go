package data

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// node is a node that creates a dataset.
type node struct {
	*kernel.Construction
	functions map[string]kernel.Function // functions of the attributes of kind func
}

// maker creates the dataset of a node from its inputs.
type maker func(n *node, ctx *kernel.Context) (dataset, error)

// withSpec appends the attributes that all datasets have.
func withSpec(attrs ...string) []string {
	return append(attrs, "output_types: list(type) >= 1", "output_shapes: list(shape) >= 1")
}

// withSpecAndMetadata is like withSpec, with the attribute metadata of most datasets.
func withSpecAndMetadata(attrs ...string) []string { return append(withSpec(attrs...), metadata) }

const metadata = "metadata: string = ''"

// experimental holds the operations that older graphs name with the prefix "Experimental", and the
// attributes that these versions lack. None of them has metadata.
var experimental = map[string][]string{
	"AssertNextDataset": nil, "BytesProducedStatsDataset": nil, "ChooseFastestDataset": nil, "DenseToSparseBatchDataset": nil, "DirectedInterleaveDataset": {"stop_on_empty_dataset"},
	"GroupByReducerDataset": nil, "GroupByWindowDataset": nil, "IgnoreErrorsDataset": nil, "LatencyStatsDataset": nil,
	"MapAndBatchDataset": nil, "MapDataset": nil, "MatchingFilesDataset": nil, "MaxIntraOpParallelismDataset": nil, "NonSerializableDataset": nil,
	"ParallelInterleaveDataset": nil, "PrivateThreadPoolDataset": nil, "RandomDataset": nil, "RebatchDataset": nil, "ScanDataset": {"use_default_device"},
	"SetStatsAggregatorDataset": nil, "SleepDataset": nil, "SlidingWindowDataset": {"drop_remainder"}, "TakeWhileDataset": nil, "ThreadPoolDataset": nil, "UnbatchDataset": nil, "UniqueDataset": nil,
}

// register registers an operation that creates a dataset. def has its name, documentation, inputs
// and attributes.
func register(def opdef.Def, build maker) {
	if def.Out == nil {
		def.Out = []string{"handle: variant"}
	}
	if def.Shape == nil {
		def.Shape = opdef.ScalarShape
	}
	registerAs(def, build)
	if later, ok := experimental[def.Name]; ok {
		def.Name = "Experimental" + def.Name
		//sizedmake:ok attributes of an operation
		def.Attrs = slices.DeleteFunc(slices.Clone(def.Attrs), func(attr string) bool {
			name, _, _ := strings.Cut(attr, ":")
			return name == "metadata" || slices.Contains(later, name)
		})
		registerAs(def, build)
	}
}

func registerAs(def opdef.Def, build maker) {
	kernel.RegisterNew(def, func(c *kernel.Construction) (kernel.Kernel, error) {
		if !wellFormed([]byte(c.Attrs.String("metadata"))) {
			return nil, status.InvalidArgumentf("Could not parse the 'metadata' attribute.")
		}
		n, err := newNode(c)
		if err != nil {
			return nil, err
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			d, err := newNodeDataset(n, build, ctx)
			if err == nil {
				ctx.SetOutput(0, d)
			}
			return err
		}), nil
	})
}

func newNode(c *kernel.Construction) (*node, error) {
	n := &node{Construction: c, functions: map[string]kernel.Function{}}
	for _, attr := range c.Op.Attrs {
		if attr.Kind != "func" {
			continue
		}
		if c.Functions == nil {
			return nil, status.InvalidArgumentf("%s needs functions, but the graph has none", c.Op.Name)
		}
		f, err := c.Functions.Instantiate(c.Attrs.Func(attr.Name))
		if err != nil {
			return nil, err
		}
		n.functions[attr.Name] = f
	}
	return n, nil
}

// spec returns the types and shapes of elements in the node's attributes.
func (n *node) spec() spec {
	types := n.Attrs.Types("output_types")
	if types == nil {
		types = n.Attrs.Types("Toutput_types")
	}
	return spec{types: types, shapes: n.Attrs.Shapes("output_shapes")}
}

// inputs returns the tensors of an argument, each with a new reference.
func (n *node) inputs(ctx *kernel.Context, arg string) (element, error) {
	lo, hi, err := n.InputRange(arg)
	if err != nil {
		return nil, err
	}
	out := element(membudget.MakeCap[tensor.Tensor](hi - lo))
	for i := lo; i < hi; i++ {
		//sizedmake:ok one for each input
		out = append(out, ctx.Input(i).Retain())
	}
	return out, nil
}

// hasArg reports whether the operation has an argument. Some versions of an operation lack one.
func (n *node) hasArg(arg string) bool {
	return slices.ContainsFunc(n.Op.Inputs, func(a opdef.Arg) bool { return a.Name == arg })
}

// scalar returns the value of an argument, which must be a scalar.
func scalar[T tensor.Elem](n *node, ctx *kernel.Context, arg string) (v T, err error) {
	i, _, err := n.InputRange(arg)
	if err != nil {
		return v, err
	}
	t := ctx.Input(i)
	if t.Rank() != 0 {
		return v, status.InvalidArgumentf("%s must be a scalar", arg)
	}
	return tensor.Value[T](t), nil
}

// scalars returns the values of integer arguments, which must be scalars.
func (n *node) scalars(ctx *kernel.Context, args ...string) ([]int64, error) {
	out := membudget.Make[int64](len(args))
	for i, arg := range args {
		v, err := scalar[int64](n, ctx, arg)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// stage is the common part of datasets with one input. By default the elements have the same
// number, types and shapes as those of the input.
type stage struct {
	*spec
	input dataset
}

func (s *stage) cardinality() int64 { return s.input.cardinality() }

func (s *stage) from() dataset { return s.input }

// infiniteOrUnknown is the cardinality of a stage whose output is infinite if the input is, and
// unknown otherwise.
func (s *stage) infiniteOrUnknown() int64 {
	if s.input.cardinality() == infinite {
		return infinite
	}
	return unknown
}

// stageOf returns the stage of a node whose first input is a dataset.
func (n *node) stageOf(ctx *kernel.Context) (stage, error) {
	input, err := datasetOf(ctx.Input(0))
	s := n.spec()
	return stage{spec: &s, input: input}, err
}

// source is the common part of iterators with one input.
type source struct {
	input iterator
	polls polls
}

// pull returns the next element of the input. It is for loops that may take many elements for one
// request: it fails once the request is cancelled.
func (s *source) pull(r *run) (element, error) {
	if err := s.polls.check(r); err != nil {
		return nil, err
	}
	return s.input.next(r)
}

// polls counts the rounds of a loop over elements.
type polls uint8

// check returns an error if the request is cancelled. It looks at every 64th call.
func (p *polls) check(r *run) error {
	if *p++; *p%64 != 0 {
		return nil
	}
	return r.cancelled()
}

func (s *stage) begin(r *run) (source, error) {
	it, err := open(r, s.input)
	return source{input: it}, err
}

func (s *source) state(a *archive) { s.input.state(a) }

// registerStage registers an operation that creates a dataset from its argument input_dataset and
// the arguments more.
func registerStage(name, doc string, more, attrs []string, build stageMaker) {
	registerStageOf(0, name, doc, more, attrs, build)
}

// stageMaker creates a dataset with one input from the other inputs of its node.
type stageMaker func(n *node, ctx *kernel.Context, s stage) (dataset, error)

// registerStageOf is registerStage for an operation of some class.
func registerStageOf(class opdef.Class, name, doc string, more, attrs []string, build stageMaker) {
	register(opdef.Def{
		Class: class,
		Name:  name, Doc: doc, In: slices.Concat([]string{"input_dataset: variant"}, more), Attrs: attrs,
		Stateful: slices.ContainsFunc(more, isResource),
	}, func(n *node, ctx *kernel.Context) (dataset, error) {
		s, err := n.stageOf(ctx)
		if err != nil {
			return nil, err
		}
		return build(n, ctx, s)
	})
}

func isResource(arg string) bool { return len(arg) > 10 && arg[len(arg)-10:] == ": resource" }
