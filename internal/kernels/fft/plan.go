package fft

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

// plan computes transforms of one length in place. It belongs to one goroutine, because it contains
// scratch memory.
type plan interface {
	forward(line []complex128)
	backward(line []complex128) // without the division by the length
}

// newPlan returns a plan for n elements. It panics as [membudget.Make] does.
func newPlan(n int) plan {
	if largestFactor(n) > mostFactor {
		return newChirp(n)
	}
	membudget.MustTake(6 * 8 * int64(n)) // for coefficients and for a copy of the elements
	return factored{fourier.NewCmplxFFT(n)}
}

// mostFactor is the largest prime factor of a length that factored is used for. It takes time in
// proportion to the length times this factor.
const mostFactor = 256

// largestFactor returns the largest prime factor of n.
func largestFactor(n int) int {
	largest := 1
	for p := 2; p*p <= n; p++ {
		for n%p == 0 {
			n, largest = n/p, p
		}
	}
	return max(n, largest)
}

// factored is a plan for lengths with small prime factors.
type factored struct{ fft *fourier.CmplxFFT }

func (f factored) forward(line []complex128)  { f.fft.Coefficients(line, line) }
func (f factored) backward(line []complex128) { f.fft.Sequence(line, line) }

// chirp is a plan for any length. It computes a transform as a convolution with a chirp, by
// transforms whose length is a power of two (Bluestein, A linear filtering approach to the
// computation of discrete Fourier transform, 1970).
type chirp struct {
	fft    factored
	w      []complex128 // exp(-πi*k²/n)
	filter []complex128 // transform of the conjugate of w at positive and negative distances
	buf    []complex128
}

func newChirp(n int) *chirp {
	size := 1
	for size < 2*n-1 {
		size *= 2
	}
	c := &chirp{
		w: membudget.Make[complex128](n), filter: membudget.Make[complex128](size), buf: membudget.Make[complex128](size),
	}
	c.fft = newPlan(size).(factored)
	square := 0 // k² modulo 2n
	for k := range c.w {
		c.w[k] = cmplx.Rect(1, -math.Pi*float64(square)/float64(n))
		square = (square + 2*k + 1) % (2 * n)
	}
	for k, w := range c.w {
		c.filter[k] = cmplx.Conj(w)
		c.filter[(size-k)%size] = cmplx.Conj(w)
	}
	c.fft.forward(c.filter)
	return c
}

func (c *chirp) forward(line []complex128) {
	for k, w := range c.w {
		c.buf[k] = line[k] * w
	}
	clear(c.buf[len(line):])
	c.fft.forward(c.buf)
	for k, f := range c.filter {
		c.buf[k] *= f
	}
	c.fft.backward(c.buf)
	size := complex(float64(len(c.buf)), 0)
	for k, w := range c.w {
		line[k] = c.buf[k] / size * w
	}
}

func (c *chirp) backward(line []complex128) {
	conjugate(line)
	c.forward(line)
	conjugate(line)
}

func conjugate(line []complex128) {
	for i, x := range line {
		line[i] = cmplx.Conj(x)
	}
}
