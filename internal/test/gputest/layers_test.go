package gputest_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestLayersOnDevice compares operations on images, volumes and sequences with their kernels for
// CPUs, and demands that none of them takes a detour.
func TestLayersOnDevice(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16} {
		t.Run(dtype.String(), func(t *testing.T) { compareDevices(t, dtype) })
	}
}

// numbers makes tensors of a type. They are fed, because a graph of constants is computed before it
// is placed.
type numbers struct {
	s     *op.Scope
	r     *rand.Rand
	dtype tensor.DType
	feeds weft.Feeds
}

// real returns numbers from -1 to 1, small returns a few different integers.
func (n *numbers) real(shape ...int64) op.Output {
	return n.of(shape, func() float32 { return 2*n.r.Float32() - 1 })
}

func (n *numbers) small(shape ...int64) op.Output {
	return n.of(shape, func() float32 { return float32(n.r.IntN(9) - 4) })
}

func (n *numbers) of(shape tensor.Shape, f func() float32) op.Output {
	values := make([]float32, shape.NumElements())
	for i := range values {
		values[i] = f()
	}
	t, err := tensor.FromSlice(shape, values)
	if err != nil {
		panic(err) // as many values as elements
	}
	x := op.Placeholder(n.s, tensor.Float32)
	n.feeds[x] = t
	return op.Cast(n.s, x, n.dtype)
}

func compareDevices(t *testing.T, dtype tensor.DType) {
	s := op.NewScope()
	places := []*op.Scope{s.WithDevice("/cpu:0"), s.WithDevice("/gpu:0")}
	n := &numbers{s: places[0], r: rand.New(rand.NewPCG(1, 2)), dtype: dtype, feeds: weft.Feeds{}}
	ints := func(v ...int32) op.Output { return op.Const(places[0], v) }
	var names []string
	outs := [2][]op.Output{}
	add := func(name string, f func(s *op.Scope) []op.Output) {
		for i, place := range places {
			for _, out := range f(place) {
				if outs[i] = append(outs[i], out); i == 0 {
					names = append(names, name)
				}
			}
		}
	}
	one := func(y op.Output) []op.Output { return []op.Output{y} }

	volumes, filter := n.real(2, 5, 6, 7, 3), n.real(3, 2, 3, 3, 4)
	thin := n.real(1, 1, 1, 3, 5)
	for _, padding := range []string{"SAME", "VALID"} {
		strides := []int64{1, 1, 2, 1, 1}
		add("Conv3D "+padding, func(s *op.Scope) []op.Output {
			y := op.Conv3D(s, volumes, filter, strides, padding)
			return []op.Output{
				y,
				op.Conv3DBackpropInputV2(s, ints(2, 5, 6, 7, 3), filter, y, strides, padding),
				op.Conv3DBackpropFilterV2(s, volumes, ints(3, 2, 3, 3, 4), y, strides, padding),
			}
		})
	}
	add("Conv3D 1x1x1", func(s *op.Scope) []op.Output {
		return one(op.Conv3D(s, volumes, thin, []int64{1, 1, 1, 1, 1}, "SAME"))
	})
	add("Conv", func(s *op.Scope) []op.Output { return one(op.Conv(s, volumes, filter, []int64{1, 2, 1, 1, 1}, "SAME")) })

	images := n.small(3, 8, 7, 2)
	ksize, strides := []int64{1, 3, 2, 1}, []int64{1, 2, 2, 1}
	gradients, inputs := n.real(3, 4, 4, 2), n.real(3, 8, 7, 2)
	for _, batch := range []bool{false, true} {
		add(fmt.Sprintf("argmax, batch %v", batch), func(s *op.Scope) []op.Output {
			y, at := op.MaxPoolWithArgmax(s, images, ksize, strides, "SAME", op.MaxPoolWithArgmaxIncludeBatchInIndex(batch))
			return []op.Output{
				y, at,
				op.MaxPoolGradWithArgmax(s, images, gradients, at, ksize, strides, "SAME", op.MaxPoolGradWithArgmaxIncludeBatchInIndex(batch)),
				op.MaxPoolGradGradWithArgmax(s, images, inputs, at, ksize, strides, "SAME", op.MaxPoolGradGradWithArgmaxIncludeBatchInIndex(batch)),
			}
		})
	}
	add("MaxPoolGradGrad", func(s *op.Scope) []op.Output {
		y := op.MaxPool(s, images, ksize, strides, "SAME")
		return one(op.MaxPoolGradGrad(s, images, y, inputs, ksize, strides, "SAME"))
	})

	if dtype != tensor.Float16 { // the kernels for CPUs round each sum of 16 bits
		for _, size := range [][2]int32{{5, 3}, {13, 20}, {8, 7}, {1, 40}} {
			grads := n.real(3, int64(size[0]), int64(size[1]), 2)
			for _, mode := range []string{"", "corners", "centers"} {
				corners, centers := mode == "corners", mode == "centers"
				add(fmt.Sprintf("resize to %v %s", size, mode), func(s *op.Scope) []op.Output {
					wide := grads
					if dtype != tensor.Float32 {
						wide = op.Cast(s, grads, tensor.Float32)
					}
					return []op.Output{
						op.ResizeBilinear(s, inputs, ints(size[:]...), op.ResizeBilinearAlignCorners(corners), op.ResizeBilinearHalfPixelCenters(centers)),
						op.ResizeBilinearGrad(s, wide, inputs, op.ResizeBilinearGradAlignCorners(corners), op.ResizeBilinearGradHalfPixelCenters(centers)),
						op.ResizeNearestNeighbor(s, inputs, ints(size[:]...), op.ResizeNearestNeighborAlignCorners(corners), op.ResizeNearestNeighborHalfPixelCenters(centers)),
						op.ResizeNearestNeighborGrad(s, grads, ints(8, 7), op.ResizeNearestNeighborGradAlignCorners(corners), op.ResizeNearestNeighborGradHalfPixelCenters(centers)),
					}
				})
			}
		}
	}
	if dtype != tensor.Float64 { // which takes a detour
		for _, size := range []int64{1, 5, 900, 3000} {
			rows := n.small(3, size)
			for _, k := range []int64{1, size} {
				add(fmt.Sprintf("top %d of %d", k, size), func(s *op.Scope) []op.Output {
					values, at := op.TopKV2(s, rows, op.Const(places[0], int32(k)))
					return []op.Output{values, at}
				})
			}
		}
	}
	sequences, lengths := n.real(4, 6, 3), ints(0, 6, 1, 4)
	add("ReverseSequence", func(s *op.Scope) []op.Output {
		return one(op.ReverseSequence(s, sequences, lengths, 1))
	})
	wide := op.Const(places[0], []int64{2, 0, 3})
	add("ReverseSequence, batch last", func(s *op.Scope) []op.Output {
		return one(op.ReverseSequence(s, sequences, wide, 0, op.ReverseSequenceBatchDim(2)))
	})

	before := device.Detours()
	got, err := open(t, s).Run(t.Context(), n.feeds, slices.Concat(outs[0], outs[1]), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		sameNumbers(t, name+" "+outs[0][i].Node.Op.Name, &got[len(names)+i], &got[i])
	}
	for name, count := range maps.All(device.Detours()) {
		if count > before[name] && !strings.HasPrefix(name, "_") {
			t.Errorf("%s took %d detours", name, count-before[name])
		}
	}
}

// sameNumbers compares the results of a GPU and a CPU.
func sameNumbers(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	if !got.Shape().Equal(want.Shape()) || got.DType() != want.DType() {
		t.Errorf("%s: %v %v, want %v %v", what, got.DType(), got.Shape(), want.DType(), want.Shape())
		return
	}
	tolerance := map[tensor.DType]float64{tensor.Float16: 2e-2, tensor.Float32: 1e-4, tensor.Float64: 1e-6}[got.DType()]
	g, w := wideValues(got), wideValues(want)
	for i := range g {
		if math.Abs(g[i]-w[i]) > tolerance {
			t.Errorf("%s: element %d is %v, want %v", what, i, g[i], w[i])
			return
		}
	}
}

// wideValues returns the elements of a tensor.
func wideValues(t *tensor.Tensor) []float64 {
	out := make([]float64, t.NumElements())
	for i := range out {
		switch t.DType() {
		case tensor.Float16:
			out[i] = float64(tensor.Values[tensor.Float16Elem](t)[i].Float32())
		case tensor.Float32:
			out[i] = float64(tensor.Values[float32](t)[i])
		case tensor.Float64:
			out[i] = tensor.Values[float64](t)[i]
		case tensor.Int32:
			out[i] = float64(tensor.Values[int32](t)[i])
		case tensor.Int64:
			out[i] = float64(tensor.Values[int64](t)[i])
		default:
			panic("a type without numbers: " + t.DType().String())
		}
	}
	return out
}
