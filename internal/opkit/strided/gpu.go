package strided

import (
	"fmt"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/tensor"
)

// copyOnDevice queues a copy between tensors in the memory of a device. An error of the device is a
// panic, and so an error of the step.
func copyOnDevice(d *device.Device, dst *tensor.Tensor, dv View, src *tensor.Tensor, sv View) {
	if dv.Len() == 0 {
		return
	}
	shape, to, from := widen(dv.Dims), widen(dv.Strides), widen(sv.Strides)
	if err := copyLoop(d, dst, src, shape, to, from, int64(dv.Offset), int64(sv.Offset)); err != nil {
		panic(fmt.Errorf("copy on %s: %w", d.Name(), err))
	}
}

// Splat sets all elements of dst to the only element of value, which may be on the host if dst is
// in the memory of a device.
func Splat(dst, value *tensor.Tensor) {
	if d := device.Of(dst); d != nil && !value.OnDevice() {
		on, err := d.ToDevice(value)
		if err != nil {
			panic(fmt.Errorf("copy to %s: %w", d.Name(), err))
		}
		defer on.Release()
		value = &on
	}
	n := dst.NumElements()
	Copy(dst, Of(tensor.Shape{int64(n)}), value, View{Dims: []int{n}, Strides: []int{0}})
}

func widen(v []int) []int64 {
	out := make([]int64, len(v)) //sizedmake:ok dimensions
	for i, n := range v {
		out[i] = int64(n)
	}
	return out
}

func copyLoop(d *device.Device, dst, src *tensor.Tensor, shape, to, from []int64, dstAt, srcAt int64) error {
	l, ok := source.NewLoop(shape, to, from)
	if !ok { // one index of the first dimension after the other
		for i := range shape[0] {
			if err := copyLoop(d, dst, src, shape[1:], to[1:], from[1:], dstAt+i*to[0], srcAt+i*from[0]); err != nil {
				return err
			}
		}
		return nil
	}
	size := dst.DType().Size()
	if batch, rows, cols, ok := transposition(&l); ok && dstAt == 0 && srcAt == 0 {
		tiles := batch * ((rows + 31) / 32) * ((cols + 31) / 32)
		return d.Launch("transpose_"+source.SizeName(size), [3]int{int(min(tiles, 1<<20)), 1, 1}, [3]int{32, 8, 1}, dst, src, batch, rows, cols)
	}
	place := d.Mem(dst).Off | d.Mem(src).Off // rows of a tensor may begin anywhere
	for size < 16 && place%(2*size) == 0 && doubles(&l, &dstAt, &srcAt) {
		size *= 2
	}
	n := l.Len()
	return d.LaunchLine("strided_"+source.SizeName(size), n, dst, src, n, dstAt, srcAt, l.Arg())
}

// doubles makes a copy one of half as many elements of twice the size, if all places allow it.
func doubles(l *source.Loop, dstAt, srcAt *int64) bool {
	last := len(l.Sizes) - 1
	if l.Strides[0][last] != 1 || l.Strides[1][last] != 1 || (l.Sizes[last]|*dstAt|*srcAt)&1 != 0 {
		return false
	}
	for _, s := range l.Strides {
		for _, v := range s[:last] {
			if v&1 != 0 {
				return false
			}
		}
	}
	for _, s := range l.Strides {
		for i := range s[:last] {
			s[i] /= 2
		}
	}
	l.Sizes[last] /= 2
	*dstAt, *srcAt = *dstAt/2, *srcAt/2
	return true
}

// transposition reports whether a copy swaps the rows and columns of whole matrices. rows and cols
// are those of the source.
func transposition(l *source.Loop) (batch, rows, cols int64, ok bool) {
	k := len(l.Sizes) - 2
	if k != 0 && k != 1 {
		return 0, 0, 0, false
	}
	cols, rows, batch = l.Sizes[k], l.Sizes[k+1], 1
	to, from := l.Strides[0], l.Strides[1]
	if to[k] != rows || to[k+1] != 1 || from[k] != 1 || from[k+1] != cols {
		return 0, 0, 0, false
	}
	if k == 1 {
		batch = l.Sizes[0]
		if to[0] != rows*cols || from[0] != rows*cols {
			return 0, 0, 0, false
		}
	}
	return batch, rows, cols, true
}
