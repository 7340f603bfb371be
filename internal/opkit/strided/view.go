// Package strided copies elements between strided views of tensors. Slicing, reversing,
// transposing, broadcasting, padding, tiling and concatenation are all one copy between two views
// of the same dimensions. So are operations on diagonals and blocks.
package strided

import (
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// View describes elements of a tensor as a strided array: element i is at Offset + Σ
// i[k]·Strides[k], counted in elements. Strides may be negative, and zero in the source of a copy.
type View struct {
	Dims, Strides []int
	Offset        int
}

// Of returns the view of all elements of a tensor of the given shape.
func Of(shape tensor.Shape) View {
	both := membudget.Make[int](2 * len(shape))
	v := View{Dims: both[:len(shape):len(shape)], Strides: both[len(shape):]}
	step := 1
	for i := len(shape) - 1; i >= 0; i-- {
		v.Dims[i], v.Strides[i] = int(shape[i]), step
		step *= int(shape[i])
	}
	return v
}

// Clone returns a view whose dimensions can be changed without changing v.
func (v View) Clone() View {
	return View{Dims: slices.Clone(v.Dims), Strides: slices.Clone(v.Strides), Offset: v.Offset}
}

// Slice narrows axis, in place, to n elements: start, start+step, and so on.
func (v *View) Slice(axis, start, n, step int) {
	v.Offset += start * v.Strides[axis]
	v.Dims[axis] = n
	v.Strides[axis] *= step
}

// Reverse reverses axis in place.
func (v *View) Reverse(axis int) {
	if v.Dims[axis] > 0 {
		v.Slice(axis, v.Dims[axis]-1, v.Dims[axis], -1)
	}
}

// Permute returns a view whose axis i is axis perm[i] of v.
func (v View) Permute(perm []int) View {
	out := View{Dims: membudget.Make[int](len(perm)), Strides: membudget.Make[int](len(perm)), Offset: v.Offset}
	for i, p := range perm {
		out.Dims[i], out.Strides[i] = v.Dims[p], v.Strides[p]
	}
	return out
}

// Split returns a view with axis split into two axes of sizes size/inner and inner.
func (v View) Split(axis, inner int) View {
	out := View{Offset: v.Offset}
	out.Dims = slices.Insert(slices.Clone(v.Dims), axis+1, inner)
	out.Dims[axis] = v.Dims[axis] / inner
	out.Strides = slices.Insert(slices.Clone(v.Strides), axis, v.Strides[axis]*inner)
	return out
}

// Drop returns a view without axis, at index 0 of that axis.
func (v View) Drop(axis int) View {
	return View{
		Dims:    slices.Delete(slices.Clone(v.Dims), axis, axis+1),
		Strides: slices.Delete(slices.Clone(v.Strides), axis, axis+1),
		Offset:  v.Offset,
	}
}

// Broadcast returns a view repeated to the given dimensions by NumPy's rules. The caller has
// checked that they allow it.
func (v View) Broadcast(dims []int) View {
	//sizedmake:ok an element for each dimension
	out := View{Dims: slices.Clone(dims), Strides: membudget.Make[int](len(dims)), Offset: v.Offset}
	lead := len(dims) - len(v.Dims)
	for i, d := range v.Dims {
		if d == dims[lead+i] && d != 1 {
			out.Strides[lead+i] = v.Strides[i]
		}
	}
	return out
}

// Len returns the number of elements.
func (v View) Len() int {
	n := 1
	for _, d := range v.Dims {
		n *= d
	}
	return n
}
