package fft

import (
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/tensor"
)

// TestRecorded compares kernels and shape functions with recorded results of TensorFlow.
func TestRecorded(t *testing.T) {
	kerneltest.RunCases(t, "testdata/fft.txt", "testdata/audio.txt")
}

// Both kinds of plans compute the same, also for lengths with a large prime factor.
func TestPlans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 3, 8, 509, 1021, 2042} {
		line := make([]complex128, n)
		for i := range line {
			line[i] = complex(r.NormFloat64(), r.NormFloat64())
		}
		want := fourier.NewCmplxFFT(n).Coefficients(nil, line)
		for _, p := range []plan{newPlan(n), newChirp(n)} {
			got := slices.Clone(line)
			p.forward(got)
			for i := range got {
				if cmplx.Abs(got[i]-want[i]) > 1e-9 {
					t.Fatalf("%d elements: component %d is %v, want %v", n, i, got[i], want[i])
				}
			}
			p.backward(got)
			for i := range got {
				if cmplx.Abs(got[i]/complex(float64(n), 0)-line[i]) > 1e-12*float64(n) {
					t.Fatalf("%d elements: element %d is %v after both transforms, want %v", n, i, got[i], line[i])
				}
			}
		}
	}
}

// The length 1,048,573 is prime. A transform that takes its square in time would need an hour.
func TestPrimeLength(t *testing.T) {
	in, err := tensor.Zeros(tensor.Complex64, tensor.Shape{1_048_573})
	if err != nil {
		t.Fatal(err)
	}
	tensor.Values[complex64](&in)[0] = 1
	got, err := kerneltest.Try("FFT", nil, in)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range tensor.Values[complex64](&got[0]) {
		if cmplx.Abs(complex128(x)-1) > 1e-6 {
			t.Fatalf("component %d is %v, want 1", i, x)
		}
	}
}

// The coefficients of a transform take three times the memory of its elements.
func TestMemoryOfPlans(t *testing.T) {
	in, err := tensor.Zeros(tensor.Complex64, tensor.Shape{4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 256<<20, "FFT", nil, in)
}

// Transforms end with their step.
func TestTransformEndsWithStep(t *testing.T) {
	kerneltest.WantCancelled(t, "FFT", nil, tensor.Vector[complex64](1, 2, 3))
}
