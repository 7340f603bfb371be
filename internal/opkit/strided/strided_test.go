package strided

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func sequence[T int8 | int16 | int32 | int64](n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = T(i)
	}
	return out
}

// randomViews returns a random permuted, stepped view of a tensor of the given dimensions and a
// fresh row-major view of the same dimensions.
func randomViews(r *rand.Rand) (shape tensor.Shape, strided, dense View) {
	rank := r.IntN(5)
	shape = make(tensor.Shape, rank)
	perm := r.Perm(rank)
	for i := range shape {
		shape[i] = int64(r.IntN(20))
	}
	v := Of(shape)
	for i := range rank {
		switch n := v.Dims[i]; r.IntN(4) {
		case 0:
			v.Reverse(i)
		case 1:
			if n > 3 {
				v.Slice(i, 1, (n-1)/2, 2)
			}
		case 2:
			if n > 1 {
				v.Slice(i, 1, n-1, 1)
			}
		}
	}
	v = v.Permute(perm)
	out := make(tensor.Shape, rank)
	for i, d := range v.Dims {
		out[i] = int64(d)
	}
	return shape, v, Of(out)
}

func visit(v View, f func(at int)) {
	var walk func(axis, at int)
	walk = func(axis, at int) {
		if axis == len(v.Dims) {
			f(at)
			return
		}
		for i := range v.Dims[axis] {
			walk(axis+1, at+i*v.Strides[axis])
		}
	}
	walk(0, v.Offset)
}

func TestCopyAgainstWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		shape, sv, dv := randomViews(r)
		checkCopies[int8](t, shape, sv, dv)
		checkCopies[int16](t, shape, sv, dv)
		checkCopies[int32](t, shape, sv, dv)
		checkCopies[int64](t, shape, sv, dv)
	}
}

func checkCopies[T int8 | int16 | int32 | int64](t *testing.T, shape tensor.Shape, sv, dv View) {
	t.Helper()
	src := tensor.Vector(sequence[T](int(shape.NumElements()))...)
	dst := tensor.Vector(make([]T, dv.Len())...)
	Copy(&dst, dv, &src, sv)
	var want []T
	visit(sv, func(at int) { want = append(want, tensor.Values[T](&src)[at]) })
	if got := tensor.Values[T](&dst); !slices.Equal(got, want) {
		t.Fatalf("copy of view %+v of shape %v:\n got %v\nwant %v", sv, shape, got, want)
	}
	back := tensor.Vector(make([]T, shape.NumElements())...)
	Copy(&back, sv, &dst, dv)
	visit(sv, func(at int) {
		if tensor.Values[T](&back)[at] != tensor.Values[T](&src)[at] {
			t.Fatalf("element %d did not come back through view %+v of shape %v", at, sv, shape)
		}
	})
}

func TestCopyStringsAndBroadcast(t *testing.T) {
	src := tensor.Vector("a", "b", "c")
	dst, err := tensor.Zeros(tensor.String, tensor.Shape{2, 3})
	if err != nil {
		t.Fatal(err)
	}
	Copy(&dst, Of(dst.Shape()), &src, Of(src.Shape()).Broadcast([]int{2, 3}))
	if got := tensor.Values[string](&dst); !slices.Equal(got, []string{"a", "b", "c", "a", "b", "c"}) {
		t.Errorf("broadcast to %q", got)
	}
}

func TestLargeCopies(t *testing.T) {
	shape := tensor.Shape{300, 7, 211}
	src := tensor.Vector(sequence[int32](int(shape.NumElements()))...)
	for _, perm := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}, {2, 0, 1}} {
		sv := Of(shape).Permute(perm)
		out := tensor.Shape{shape[perm[0]], shape[perm[1]], shape[perm[2]]}
		dst := tensor.Vector(make([]int32, out.NumElements())...)
		Copy(&dst, Of(out), &src, sv)
		i := 0
		visit(sv, func(at int) {
			if tensor.Values[int32](&dst)[i] != int32(at) {
				t.Fatalf("permutation %v: element %d is %d, want %d", perm, i, tensor.Values[int32](&dst)[i], at)
			}
			i++
		})
	}
}

func BenchmarkTranspose(b *testing.B) {
	shape := tensor.Shape{1024, 1024}
	src := tensor.Vector(sequence[int32](1 << 20)...)
	dst := tensor.Vector(make([]int32, 1<<20)...)
	b.SetBytes(8 << 20)
	for b.Loop() {
		Copy(&dst, Of(shape), &src, Of(shape).Permute([]int{1, 0}))
	}
}
