package clustering

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/tensor"
)

// TestRecorded compares kernels with recorded results of TensorFlow.
func TestRecorded(t *testing.T) { kerneltest.RunCases(t, "testdata/clustering.txt") }

// TestBlocks compares a search over several blocks of points and centers with one that computes
// every distance.
func TestBlocks(t *testing.T) {
	const n, m, dims, k = pointBlock + 20, 2*centerBlock + 5, 3, 40
	random := rand.New(rand.NewPCG(1, 2))
	matrix := func(rows int) ([]float32, tensor.Tensor) {
		all := make([]float32, rows*dims)
		for i := range all {
			// whole numbers have exact distances and many ties
			all[i] = float32(random.IntN(9))
		}
		out, err := tensor.FromSlice(tensor.Shape{int64(rows), dims}, all)
		if err != nil {
			t.Fatal(err)
		}
		return all, out
	}
	p, points := matrix(n)
	c, centers := matrix(m)
	out := kerneltest.Run(t, "NearestNeighbors", nil, points, centers, tensor.Scalar(int64(k)))
	indices, distances := tensor.Values[int64](&out[0]), tensor.Values[float32](&out[1])
	for i := range n {
		all := make([]candidate, m)
		for j := range all {
			for d := range dims {
				diff := p[i*dims+d] - c[j*dims+d]
				all[j].distance += diff * diff
			}
			all[j].center = j
		}
		slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
		for r, want := range all[:k] {
			if at := i*k + r; indices[at] != int64(want.center) || distances[at] != want.distance {
				t.Fatalf("point %d: center %d is %d at %v, want %+v", i, r, indices[at], distances[at], want)
			}
		}
	}
}

// TestEqualPoints chooses centers among identical points.
func TestEqualPoints(t *testing.T) {
	for _, v := range []float32{0, 1, 0.1, 1e20} {
		points, err := tensor.FromSlice(tensor.Shape{4, 2}, []float32{v, v, v, v, v, v, v, v})
		if err != nil {
			t.Fatal(err)
		}
		for seed := range int64(5) {
			kerneltest.Run(t, "KmeansPlusPlusInitialization", nil, points, tensor.Scalar[int64](4), tensor.Scalar(seed), tensor.Scalar[int64](1))
		}
	}
}

// TestPointsWithoutCoordinates gives kernels more points than any machine has memory for, in a
// tensor that has no elements.
func TestPointsWithoutCoordinates(t *testing.T) {
	points, err := tensor.FromSlice(tensor.Shape{1 << 62, 0}, []float32{})
	if err != nil {
		t.Fatal(err)
	}
	one := tensor.Scalar(int64(1))
	for op, in := range map[string][]tensor.Tensor{
		"KmeansPlusPlusInitialization": {points, one, one, one}, "NearestNeighbors": {points, points, one},
	} {
		if err := try(op, in); err == nil || !strings.Contains(err.Error(), "out of memory") {
			t.Errorf("%s: got %v", op, err)
		}
	}
}

// try runs an operation. An executor turns the panic of a kernel that asks for too much memory into
// an error of the node.
func try(op string, in []tensor.Tensor) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(*membudget.Exceeded)
		}
	}()
	_, err = kerneltest.Try(op, nil, in...)
	return err
}

// Searches end when their step ends, also one that would draw forever.
func TestSearchesEndWithStep(t *testing.T) {
	points, err := tensor.FromSlice(tensor.Shape{4, 1}, []float32{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantCancelled(t, "KmeansPlusPlusInitialization", nil, points, tensor.Scalar[int64](2), tensor.Scalar[int64](1),
		tensor.Scalar[int64](math.MaxInt64-1))
	kerneltest.WantCancelled(t, "NearestNeighbors", nil, points, points, tensor.Scalar[int64](1))
}
