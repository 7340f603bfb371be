package data

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A pipeline is the data sets of tf.data in a graph that read what a [Dataset] reads.
type pipeline struct {
	s     *op.Scope
	epoch op.Output // int64 scalar
	keep  func(op.Output) op.Output
}

// A stage adds an operation that changes the data set in, and returns the changed one, whose
// elements have the given types and shapes.
type stage func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output

// Graph adds the operations of tf.data that read the batches of an epoch to a graph, and returns a
// data set for op.MakeIterator, a variant scalar. The batches are those of [Dataset.Batches]. The
// task that runs the operations reads the files, at the paths that the program has passed. Rows of
// slices become constants of the graph. epoch is an int64 scalar, for example a placeholder.
//
// keep is called with the data set of each [Dataset.Cache] and returns the one to read in its
// place, such as the value of a variable that holds it. If keep is nil, the elements are kept only
// as long as the data set that Graph returns: each step that makes an iterator reads them again.
//
// Build errors are recorded in the scope. The error has the code Unimplemented if the elements come
// from a function of the program ([New], [Dataset.Map]).
func (d *Dataset) Graph(s *op.Scope, epoch op.Output, keep func(cached op.Output) op.Output) op.Output {
	switch {
	case d.tfdata == nil:
		s.Fail(status.Unimplementedf("data: the data set cannot be read on a worker, because %s", d.program))
		return op.Output{}
	case !d.batched:
		s.Fail(errNotBatched())
		return op.Output{}
	}
	if keep == nil {
		keep = func(cached op.Output) op.Output { return cached }
	}
	return d.tfdata(&pipeline{s, epoch, keep})
}

// components returns the types and shapes of the tensors of an element.
func components(spec []Spec) ([]tensor.DType, []tensor.PartialShape) {
	types, shapes := make([]tensor.DType, len(spec)), make([]tensor.PartialShape, len(spec))
	for i, s := range spec {
		types[i], shapes[i] = s.DType, s.Shape
	}
	return types, shapes
}

// number adds a constant.
func (p *pipeline) number(n int) op.Output { return op.Const(p.s, int64(n)) }

// fail records a build error.
func (p *pipeline) fail(err error) op.Output {
	p.s.Fail(err)
	return op.Output{}
}

// rows adds the data set of the rows of tensors.
func (p *pipeline) rows(columns []tensor.Tensor, shapes []tensor.PartialShape) op.Output {
	outs := make([]op.Output, len(columns))
	for i := range columns {
		outs[i] = op.Const(p.s, columns[i])
	}
	return op.TensorSliceDataset(p.s, outs, shapes)
}

// apply adds a function that is called with each element, on up to workers goroutines.
func (p *pipeline) apply(
	in op.Output, from []Spec, workers int, types []tensor.DType, shapes []tensor.PartialShape, f func(*op.Scope, []op.Output) []op.Output,
) op.Output {
	args, known := components(from)
	fn := op.NewFunction(p.s, "map", args, func(s *op.Scope, e []op.Output) []op.Output {
		for i := range e {
			if known[i].RankKnown() {
				e[i] = op.EnsureShape(s, e[i], known[i])
			}
		}
		return f(s, e)
	})
	if fn == nil {
		return op.Output{}
	}
	if workers <= 1 {
		return op.MapDataset(p.s, in, fn.Captured, fn.Func(), types, shapes)
	}
	return op.ParallelMapDatasetV2(p.s, in, fn.Captured, p.number(workers), fn.Func(), types, shapes, op.ParallelMapDatasetV2Deterministic("true"))
}

// choose adds a filter: it keeps the elements for which accept is true of the element of another
// data set, of scalars, at the same position.
func (p *pipeline) choose(
	in, other op.Output, otherType tensor.DType, types []tensor.DType, shapes []tensor.PartialShape, accept func(*op.Scope, op.Output) op.Output,
) op.Output {
	n := len(types)
	both := append(append([]tensor.DType{}, types...), otherType)
	all := append(append([]tensor.PartialShape{}, shapes...), tensor.MakePartial())
	accepts := op.NewFunction(p.s, "choose", both, func(s *op.Scope, e []op.Output) []op.Output { return []op.Output{accept(s, e[n])} })
	first := op.NewFunction(p.s, "chosen", both, func(_ *op.Scope, e []op.Output) []op.Output { return e[:n] })
	if accepts == nil || first == nil {
		return op.Output{}
	}
	out := op.ZipDataset(p.s, []op.Output{in, other}, both, all)
	out = op.FilterDataset(p.s, out, accepts.Captured, accepts.Func(), both, all)
	return op.MapDataset(p.s, out, first.Captured, first.Func(), types, shapes)
}
