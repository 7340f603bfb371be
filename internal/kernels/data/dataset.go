// Package data holds datasets and iterators (tf.data) of graphs.
//
// A dataset is the value of a variant: a description that is never modified. An iterator, a
// resource, asks its dataset for elements, one at a time; each stage asks the stage before it. A
// step that wants the next element waits on a goroutine of its own, so that the functions which
// make elements may wait too. Such functions run as part of that step; only those that work ahead
// of the steps (parallel maps, prefetching) run in a step of the iterator, which ends when the
// iterator does.
package data

import (
	"context"
	"io"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// element is what a dataset holds many of: one tensor for each component.
type element []tensor.Tensor

func (e element) retain() element {
	out := make(element, len(e))
	for i := range e {
		out[i] = e[i].Retain()
	}
	return out
}

func (e element) release() {
	for i := range e {
		e[i].Release()
	}
}

// Cardinalities that are no number of elements, as TensorFlow's clients know them.
const (
	infinite = -1
	unknown  = -2
)

// dataset describes a sequence of elements.
type dataset interface {
	elementSpec() *spec
	cardinality() int64
	// iterate begins at the first element.
	iterate(r *run) (iterator, error)
}

// inputsOf returns the datasets that d takes elements from.
func inputsOf(d dataset) []dataset {
	switch d := d.(type) {
	case interface{ from() dataset }:
		return []dataset{d.from()}
	case *zipDataset:
		return d.inputs
	case *concatenateDataset:
		return d.parts[:]
	}
	return nil
}

// errEnd is what an iterator returns after the last element, however often it is asked.
var errEnd = io.EOF

// iterator is a place in a dataset. It is used by one goroutine at a time.
type iterator interface {
	// next returns the next element, which the caller owns.
	next(r *run) (element, error)
	// state saves the place, or goes to a saved one.
	state(a *archive)
}

// spec is what is known of the components of elements.
type spec struct {
	types  []tensor.DType
	shapes []tensor.PartialShape
}

func (s *spec) elementSpec() *spec { return s }

// checkTypes compares the types of components with those that are asked for.
func checkTypes(want, have []tensor.DType) error {
	if len(want) != len(have) {
		return status.InvalidArgumentf("Number of components does not match: expected %d types but got %d.", len(want), len(have))
	}
	for i := range want {
		if want[i] != have[i] {
			return status.InvalidArgumentf("Data type mismatch at component %d: expected %v but got %v.", i, want[i], have[i])
		}
	}
	return nil
}

func checkShapes(want, have []tensor.PartialShape) error {
	if len(want) != len(have) {
		return status.InvalidArgumentf("Number of components does not match: expected %d shapes but got %d.", len(want), len(have))
	}
	for i := range want {
		if !want[i].Compatible(have[i]) {
			return status.InvalidArgumentf("Incompatible shapes at component %d: expected %v but got %v.", i, want[i], have[i])
		}
	}
	return nil
}

// check compares elements of one spec with another that is asked for.
func (s *spec) check(have *spec) error {
	if err := checkTypes(s.types, have.types); err != nil {
		return err
	}
	return checkShapes(s.shapes, have.shapes)
}

func specOf(e element) *spec {
	s := &spec{}
	for i := range e {
		s.types = append(s.types, e[i].DType())
		s.shapes = append(s.shapes, e[i].Shape().Partial())
	}
	return s
}

// run is one request to an iterator.
type run struct {
	ctx  *kernel.Context // of the node that asks, for the calls of functions
	life context.Context // of the iterator, for what works ahead
	ends *ending         // of the iterator

	// the options of the dataset that is iterated over have deterministic = false
	unordered bool
}

// newRun returns a request of a node. An error in a function does not end the step by itself: a
// stage may make something else of it.
func newRun(ctx *kernel.Context, life context.Context, ends *ending) *run { //nolint:revive // ctx is the node's, not a context
	step := *ctx.Step
	step.Cancel = nil
	return &run{ctx: withStep(ctx, &step), life: life, ends: ends}
}

// ahead returns a request that is not bound to the step of r and lives as long as the iterator.
func (r *run) ahead() *run {
	return &run{ctx: withStep(r.ctx, r.ctx.Step.Detach(r.life)), life: r.life, ends: r.ends, unordered: r.unordered}
}

func withStep(ctx *kernel.Context, step *kernel.Step) *kernel.Context {
	return &kernel.Context{Step: step, Device: ctx.Device, Node: ctx.Node, Depth: ctx.Depth}
}

// cancelled reports why the request must end.
func (r *run) cancelled() error {
	if ctx := r.ctx.Step.Context; ctx.Err() != nil {
		return status.FromContext(ctx, "Iterator was cancelled")
	}
	return nil
}
