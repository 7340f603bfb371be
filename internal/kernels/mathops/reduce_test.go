package mathops

import (
	flags "flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

var billion = flags.Bool("billion", false, "reduce a billion numbers")

// TestReductionsOfMany sums a large number of equal values, for which a plain float32 sum would be
// off by several percent.
func TestReductionsOfMany(t *testing.T) {
	n := 3 << 21
	if *billion {
		n = 3 * 333_333_333
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = 0.1
	}
	each := float64(float32(0.1))
	for _, cols := range []int{1, 3} {
		all, down := make([]float32, 1), make([]float32, cols)
		sums[float32]().rows(all, x)
		sums[float32]().fold(down, n/cols, sums[float32]().stacked(x, cols))
		for _, got := range []struct{ sum, want float64 }{
			{float64(all[0]), each * float64(n)}, {float64(down[0]), each * float64(n/cols)}, {float64(down[cols-1]), each * float64(n/cols)},
		} {
			if math.Abs(got.sum/got.want-1) > 1e-6 {
				t.Errorf("the sum of %d numbers in %d columns is %v, want %v", n, cols, got.sum, got.want)
			}
		}
	}
}

// TestReductionsRepeat checks that repeated reductions of the same numbers have the same bits, also
// with more threads.
func TestReductionsRepeat(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := make([]float32, 1<<18)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	results := func() []float32 {
		var all []float32
		for _, r := range []reduction[float32]{sums[float32](), greatest[float32](), floatProducts[float32]()} {
			for _, n := range []int{1, 16, 1 << 10} {
				rows, columns := make([]float32, n), make([]float32, n)
				r.rows(rows, x)
				r.fold(columns, len(x)/n, r.stacked(x, n))
				all = append(append(all, rows...), columns...)
			}
		}
		return all
	}
	defer parallel.SetThreads(parallel.SetThreads(1))
	want := results()
	for _, threads := range []int{1, 2, 4} {
		parallel.SetThreads(threads)
		for range 3 {
			got := results()
			same := func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
			if !slices.EqualFunc(got, want, same) {
				t.Fatalf("results with %d threads differ from those before", threads)
			}
		}
	}
}

// TestColumnsOfShort sums and compares columns of bfloat16 integers, whose sums in float32 are
// exact.
func TestColumnsOfShort(t *testing.T) {
	defer parallel.SetThreads(parallel.SetThreads(1))
	rng := rand.New(rand.NewPCG(2, 1))
	for _, size := range [][2]int{{1, 3}, {2, 1}, {300, 7}, {40, 1000}, {3000, 48}, {5, viaBlock + 9}, {600, 5000}} {
		rows, cols := size[0], size[1]
		in, err := tensor.Zeros(tensor.BFloat16, tensor.Shape{int64(rows), int64(cols)})
		if err != nil {
			t.Fatal(err)
		}
		sums, most := make([]float32, cols), slices.Repeat([]float32{-100}, cols)
		x := tensor.Values[tensor.BFloat16Elem](&in)
		for i := range x {
			v := float32(rng.IntN(200) - 50)
			x[i] = tensor.BFloat16Of(v)
			sums[i%cols] += v
			most[i%cols] = max(most[i%cols], v)
		}
		for _, threads := range []int{1, 3} {
			parallel.SetThreads(threads)
			for _, c := range []struct {
				op   string
				want []float32
			}{{"Sum", sums}, {"Max", most}} {
				out := kerneltest.Run(t, c.op, opdef.Attrs{"T": tensor.BFloat16, "Tidx": tensor.Int32}, in, tensor.Vector[int32](0))
				for j, got := range tensor.Values[tensor.BFloat16Elem](&out[0]) {
					if want := tensor.BFloat16Of(c.want[j]); got != want {
						t.Fatalf("%s of column %d of %v is %v, want %v", c.op, j, size, got, want)
					}
				}
			}
		}
	}
}

// TestReductionsOfOne checks that reductions over dimensions of size 1 pass their input on.
func TestReductionsOfOne(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.Int64} {
		in, err := tensor.Alloc(dtype, tensor.Shape{3, 1, 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []string{"Sum", "Mean", "Prod", "Max", "Min"} {
			for keep, want := range map[bool]tensor.Shape{false: {3, 2}, true: {3, 1, 2}} {
				got := kerneltest.Run(t, op, opdef.Attrs{"keep_dims": keep, "T": dtype}, in, tensor.Vector[int32](1))[0]
				if !got.Shape().Equal(want) || !got.SharesBuffer(&in) {
					t.Errorf("%s of %v: shape %v, want %v; the buffer is shared: %v", op, dtype, got.Shape(), want, got.SharesBuffer(&in))
				}
			}
		}
	}
}
