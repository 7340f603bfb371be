package data

import (
	"context"
	"iter"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// MapOps is [Dataset.Map] with a function that is made of operations: f adds them to a graph and
// returns the tensors of the changed element. The program runs them in a session of its own, and
// with FitOptions.DataOnWorker a worker runs them. Both give the same elements if the operations
// draw no random numbers and keep no state.
//
// f is called several times, for different graphs, and must add the same operations each time. The
// types and shapes of the elements are those of its results. An error of f is that of the first
// element.
//
//	d := data.TextLines("numbers.txt").MapOps(2, func(s *op.Scope, line []op.Output) []op.Output {
//		return []op.Output{op.StringToNumber(s, line[0])}
//	})
func (d *Dataset) MapOps(workers int, f func(s *op.Scope, element []op.Output) []op.Output) *Dataset {
	step, spec, err := mapStep(d.spec, f)
	if err != nil {
		return d.with("MapOps", failing(err), func(p *pipeline, _ op.Output, _ []tensor.DType, _ []tensor.PartialShape) op.Output {
			return p.fail(err)
		})
	}
	out := d.with("MapOps", func(ctx context.Context, epoch int) iter.Seq2[Element, error] {
		return func(yield func(Element, error) bool) {
			sess, err := weft.NewSession(local.Target, step.graph)
			if err != nil {
				yield(nil, err)
				return
			}
			defer sess.Close()
			call, err := sess.Prepare(ctx, step.Step)
			if err != nil {
				yield(nil, err)
				return
			}
			mapElements(ctx, d.read, epoch, max(workers, 1), func(e Element) (Element, error) { return call.Run(ctx, e...) }, yield)
		}
	}, func(p *pipeline, in op.Output, types []tensor.DType, shapes []tensor.PartialShape) op.Output {
		return p.apply(in, d.spec, workers, types, shapes, f)
	})
	out.spec = spec
	return out
}

// mapped is a function of operations in a graph of its own.
type mapped struct {
	weft.Step
	graph *graph.Graph
}

// mapStep returns a function of operations as a step of a session, and the types of its results.
func mapStep(from []Spec, f func(*op.Scope, []op.Output) []op.Output) (*mapped, []Spec, error) {
	s := op.NewScope().WithDevice("/cpu:0")
	m := &mapped{}
	for _, in := range from {
		m.Feeds = append(m.Feeds, op.Placeholder(s, in.DType, op.PlaceholderShape(in.Shape)))
	}
	results := f(s, append([]op.Output{}, m.Feeds...))
	if err := s.Err(); err != nil {
		return nil, nil, err
	}
	if len(results) == 0 {
		return nil, nil, status.InvalidArgumentf("data: the function of MapOps returns no tensors")
	}
	var spec []Spec
	for i, r := range results {
		if r.Node == nil {
			return nil, nil, status.InvalidArgumentf("data: result %d of the function of MapOps is no tensor", i)
		}
		spec = append(spec, Spec{r.DType().Base(), s.ShapeOf(r)})
		m.Fetches = append(m.Fetches, op.Identity(s, r)) // a placeholder cannot be fetched
	}
	var err error
	m.graph, err = s.Finalize()
	return m, spec, err
}
