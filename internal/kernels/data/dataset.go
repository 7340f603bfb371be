// Package data implements the datasets and iterators of tf.data.
//
// A dataset is the value of a variant: an immutable description of a sequence of elements. An
// iterator is a resource that reads the elements of a dataset one at a time; each stage reads from
// the stage before it. A step that requests the next element waits on a goroutine of its own, so
// that functions that compute elements may block. These functions run in the step that requests the
// element. Only stages that run ahead of the requests (parallel maps, prefetching) use a step of
// the iterator, which ends when the iterator is closed or reset.
package data

import (
	"context"
	"io"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// element is one element of a dataset: a tensor for each component.
type element []tensor.Tensor

func (e element) retain() element {
	out := element(membudget.Make[tensor.Tensor](len(e)))
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

// Special cardinalities, with the values of TensorFlow.
const (
	infinite = -1
	unknown  = -2
)

// dataset describes a sequence of elements.
type dataset interface {
	elementSpec() *spec
	cardinality() int64
	// iterate returns an iterator at the first element.
	iterate(r *run) (iterator, error)
}

// inputsOf returns the input datasets of d.
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

// reachable returns a dataset and all datasets that it reads, directly or not. Each is there once,
// at its last place in the walk that visits the inputs of a dataset before the dataset.
//
// That walk takes exponential time if stages have an input twice, as in a chain of Zip(d, d). This
// one goes from the last place to the first, and visits each dataset once.
func reachable(d dataset) []dataset {
	var all []dataset
	var meter membudget.Meter
	seen := map[dataset]bool{}
	for next := []dataset{d}; len(next) > 0; {
		d, next = next[len(next)-1], next[:len(next)-1]
		if !seen[d] {
			meter.MustTakeEntry(0)
			seen[d] = true
			all, next = membudget.Append(all, d), membudget.AppendAll(next, inputsOf(d)...)
		}
	}
	slices.Reverse(all)
	return all
}

// errEnd is the error of next after the last element; every further call returns it too.
var errEnd = io.EOF

// iterator iterates over a dataset. It is used by one goroutine at a time.
type iterator interface {
	// next returns the next element, which the caller owns.
	next(r *run) (element, error)
	// state saves the position, or loads a saved one.
	state(a *archive)
}

// spec holds the types and shapes of the components of elements, as far as they are known.
type spec struct {
	types  []tensor.DType
	shapes []tensor.PartialShape
}

func (s *spec) elementSpec() *spec { return s }

// checkTypes compares the types of components with the expected ones.
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

// check checks that elements of spec have are compatible with s.
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
	ctx      *kernel.Context // of the requesting node; function calls use it
	lifetime context.Context // lifetime of the iterator, for work ahead of requests
	cleanups *cleanups       // cleanup functions of the iterator

	// options of the iterated dataset have deterministic = false
	unordered bool

	stats *recorder // of the stages; nil if they record nothing
}

// newRun returns a request of a node. An error in a function does not end the step, because a stage
// may handle it.
func newRun(ctx *kernel.Context, lifetime context.Context, cleanups *cleanups) *run { //nolint:revive // ctx is the node's, not a context
	step := *ctx.Step
	step.Cancel = nil
	return &run{ctx: withStep(ctx, &step), lifetime: lifetime, cleanups: cleanups}
}

// ahead returns a request that is bound to the iterator's lifetime instead of the step of r.
func (r *run) ahead() *run {
	return &run{ctx: withStep(r.ctx, r.ctx.Step.Detach(r.lifetime)), lifetime: r.lifetime, cleanups: r.cleanups, unordered: r.unordered, stats: r.stats}
}

func withStep(ctx *kernel.Context, step *kernel.Step) *kernel.Context {
	return &kernel.Context{Step: step, Device: ctx.Device, Node: ctx.Node, Depth: ctx.Depth}
}

// cancelled returns an error if the request is cancelled.
func (r *run) cancelled() error {
	if ctx := r.ctx.Step.Context; ctx.Err() != nil {
		return status.FromContext(ctx, "waiting for an iterator")
	}
	return nil
}
