// Package rnn implements recurrent cells that compute all gates in one operation: LSTM, for one
// step or a sequence, and GRU, and their gradients. 16-bit elements are computed in float32 and
// rounded at the end.
package rnn

import (
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// elements holds the inputs and outputs of a kernel as float32, independent of their type.
type elements struct {
	ctx    *kernel.Context
	narrow []func() // round outputs to their type
}

// in returns the elements of input i, or nil if they are in the memory of a device.
func (e *elements) in(i int) []float32 {
	t := e.ctx.Input(i)
	if t.OnDevice() {
		return nil
	}
	if t.DType() == tensor.Float32 {
		return tensor.Values[float32](t)
	}
	wide := membudget.Make[float32](t.NumElements())
	elementwise.Widen(wide, tensor.Values[tensor.Float16Elem](t))
	return wide
}

// out allocates output i and returns its elements, which are 0.
func (e *elements) out(i int, shape tensor.Shape) ([]float32, error) {
	t, err := e.ctx.AllocateZeros(i, shape)
	if err != nil {
		return nil, err
	}
	if t.DType() == tensor.Float32 {
		return tensor.Values[float32](t), nil
	}
	wide := membudget.Make[float32](t.NumElements())
	e.narrow = append(e.narrow, func() { elementwise.Narrow(tensor.Values[tensor.Float16Elem](t), wide) })
	return wide, nil
}

// finish stores the outputs.
func (e *elements) finish() {
	for _, f := range e.narrow {
		f()
	}
}

// expected describes a valid input of a kernel.
type expected struct {
	input, rank int
	text        string // error message for another rank; # is replaced by the rank
	dims        []expectedDim
}

// expectedDim is the required size of a dimension. name and want describe the two sizes in errors.
type expectedDim struct {
	dim        int
	name, want string
	size       int
}

func (e *expected) check(ctx *kernel.Context) error {
	t := ctx.Input(e.input)
	if t.Rank() != e.rank {
		return status.InvalidArgumentf("%s", strings.Replace(e.text, "#", strconv.Itoa(t.Rank()), 1))
	}
	for _, d := range e.dims {
		if t.Dim(d.dim) != d.size {
			return status.InvalidArgumentf("%s != %s: %d vs. %d", d.name, d.want, t.Dim(d.dim), d.size)
		}
	}
	return nil
}

func checkAll(ctx *kernel.Context, all []expected) error {
	for i := range all {
		if err := all[i].check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func matrixShape(rows, cols int) tensor.Shape { return tensor.Shape{int64(rows), int64(cols)} }
