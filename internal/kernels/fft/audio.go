package fft

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "AudioSpectrogram",
		Doc: "Computes the spectrogram [channels, windows, frequencies] of audio samples [samples, channels]. " +
			"The frequencies are spread evenly from 0 to half the sample rate.",
		In: []string{"input: float32"}, Out: []string{"spectrogram: float32"},
		Attrs: []string{"window_size: int", "stride: int", "magnitude_squared: bool = false"}, Shape: spectrogramShape,
	}, newSpectrogram)
	kernel.RegisterNew(opdef.Def{
		Name: "Mfcc", Doc: "Computes mel-frequency cepstral coefficients, which speech recognition uses, of a squared spectrogram.",
		In: []string{"spectrogram: float32", "sample_rate: int32"}, Out: []string{"output: float32"},
		Attrs: []string{
			"upper_frequency_limit: float = 4000", "lower_frequency_limit: float = 20", "filterbank_channel_count: int = 40",
			"dct_coefficient_count: int = 13",
		},
		Shape: func(c *opdef.ShapeContext) error {
			if err := shapefn.CheckRanks(c, 0, 3, 0); err != nil {
				return err
			}
			count := int64(c.Attrs.Int("dct_coefficient_count"))
			if in := c.In[0]; in.RankKnown() {
				c.Out[0] = shapefn.Of(in.Dim(0), in.Dim(1), count)
			} else {
				c.Out[0] = shapefn.Of(shapefn.Unknown, shapefn.Unknown, count)
			}
			return nil
		},
	}, newMfcc)
}

// frequencies returns the number of frequencies of a window, whose length is padded to a power of
// two.
func frequencies(window int) int { return 1 + fftLength(window)/2 }

func fftLength(window int) int { return 1 << bits.Len(uint(window-1)) }

// windows returns the number of windows in the given number of samples.
func windows(samples, window, stride int) int {
	if samples < window {
		return 0
	}
	return 1 + (samples-window)/stride
}

func spectrogramShape(c *opdef.ShapeContext) error {
	in, err := opdef.WithRank(c.In[0], 2)
	if err != nil {
		return err
	}
	window, stride := c.Attrs.Int("window_size"), c.Attrs.Int("stride")
	switch {
	case window <= 1:
		return status.InvalidArgumentf("window size must be > 1, got %d", window)
	case stride <= 0:
		return status.InvalidArgumentf("stride must be strictly positive, got %d", stride)
	}
	length := in.Dim(0)
	if length >= 0 {
		length = int64(windows(int(length), window, stride))
	}
	c.Out[0] = shapefn.Of(in.Dim(1), length, int64(frequencies(window)))
	return nil
}

func newSpectrogram(c *kernel.Construction) (kernel.Kernel, error) {
	window, stride, squared := c.Attrs.Int("window_size"), c.Attrs.Int("stride"), c.Attrs.Bool("magnitude_squared")
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		switch {
		case in.Rank() != 2:
			return status.InvalidArgumentf("input must be 2-dimensional%v", in.Shape())
		case window < 2 || stride < 1:
			return status.InvalidArgumentf("Spectrogram initialization failed for window size %d and stride %d", window, stride)
		}
		channels, rows, width := in.Dim(1), windows(in.Dim(0), window, stride), frequencies(window)
		out, err := ctx.Allocate(0, tensor.Shape{int64(channels), int64(rows), int64(width)})
		if err != nil || out.NumElements() == 0 {
			return err
		}
		x, z := tensor.Values[float32](in), tensor.Values[float32](out)
		hann := membudget.Make[float64](window)
		for i := range hann {
			hann[i] = 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/float64(window))
		}
		step := ctx.Context()
		parallel.For(channels*rows, max(1, 20_000/(width*10)), func(lo, hi int) {
			membudget.MustTake(3 * 8 * int64(fftLength(window)))
			plan := fourier.NewFFT(fftLength(window))
			samples, parts := membudget.Make[float64](plan.Len()), membudget.Make[complex128](width)
			for row := lo; row < hi && step.Err() == nil; row++ {
				channel, start := row/rows, row%rows*stride
				for i, w := range hann {
					samples[i] = float64(x[(start+i)*channels+channel]) * w
				}
				plan.Coefficients(parts, samples)
				for i, p := range parts {
					v := float32(real(p)*real(p) + imag(p)*imag(p))
					if !squared {
						v = float32(math.Sqrt(float64(v)))
					}
					z[row*width+i] = v
				}
			}
		})
		return step.Err()
	}), nil
}

func newMfcc(c *kernel.Construction) (kernel.Kernel, error) {
	low, high := float64(c.Attrs.Float("lower_frequency_limit")), float64(c.Attrs.Float("upper_frequency_limit"))
	bands, coefficients := c.Attrs.Int("filterbank_channel_count"), c.Attrs.Int("dct_coefficient_count")
	return kernel.Func(func(ctx *kernel.Context) error {
		in, rates := ctx.Input(0), ctx.Input(1)
		switch {
		case in.Rank() != 3:
			return status.InvalidArgumentf("spectrogram must be 3-dimensional%v", in.Shape())
		case rates.Rank() != 0:
			return status.InvalidArgumentf("Input sample_rate should be a scalar tensor, got %v instead.", rates.Shape())
		}
		rate, width := tensor.Value[int32](rates), in.Dim(2)
		if bands < 1 || rate <= 0 || width < 2 || low < 0 || high <= low || coefficients < 1 || coefficients > bands {
			return status.InvalidArgumentf("Mfcc initialization failed for channel count %d, sample rate %d and filterbank_channel_count %d",
				width, rate, bands)
		}
		if bands > mostWeights/coefficients {
			return status.ResourceExhaustedf("%d coefficients of %d bands are too many", coefficients, bands)
		}
		out, err := ctx.Allocate(0, tensor.Shape{int64(in.Dim(0)), int64(in.Dim(1)), int64(coefficients)})
		if err != nil {
			return err
		}
		bank, dct := newMelBank(width, float64(rate), bands, low, high), cosines(coefficients, bands)
		x, z := tensor.Values[float32](in), tensor.Values[float32](out)
		step := ctx.Context()
		parallel.For(in.Dim(0)*in.Dim(1), max(1, 20_000/(width+bands*coefficients)), func(lo, hi int) {
			mel := membudget.Make[float64](bands)
			p := stepctx.Progress{Context: step, Each: width + bands*coefficients}
			for row := lo; row < hi && p.Pass(0) == nil; row++ {
				if !bank.sum(mel, x[row*width:(row+1)*width]) {
					clear(z[row*coefficients : (row+1)*coefficients])
					continue
				}
				for i, v := range mel {
					mel[i] = math.Log(max(v, 1e-12))
				}
				for i := range coefficients {
					sum := 0.0
					for j, v := range mel {
						sum += dct[i*bands+j] * v
					}
					z[row*coefficients+i] = float32(sum)
				}
			}
		})
		return step.Err()
	}), nil
}

// mostWeights bounds the memory that attribute values can allocate.
const mostWeights = 1 << 26

// cosines returns the matrix of the discrete cosine transform, with rows of n elements.
func cosines(rows, n int) []float64 {
	m := membudget.Make[float64](rows * n)
	for i := range rows {
		for j := range n {
			m[i*n+j] = math.Sqrt(2/float64(n)) * math.Cos(float64(i)*(math.Pi/float64(n))*(float64(j)+0.5))
		}
	}
	return m
}

// melBank sums the magnitudes of frequencies in bands. Bands are triangles that overlap by half and
// have the same width on the mel scale.
type melBank struct {
	first, last int       // range of frequencies that belong to bands
	band        []int     // band whose falling edge covers a frequency; -1 before the first center
	weight      []float64 // weight in that band; the rest belongs to the next band
	bands       int
}

func mel(frequency float64) float64 { return 1127 * math.Log1p(frequency/700) }

func newMelBank(width int, rate float64, bands int, low, high float64) *melBank {
	least := mel(low)
	spacing := (mel(high) - least) / float64(bands+1)
	center := func(band int) float64 { return least + spacing*float64(band+1) }
	step := 0.5 * rate / float64(width-1)
	b := &melBank{
		first: int(min(1.5+low/step, math.MaxInt32)), last: int(min(high/step, math.MaxInt32)), band: membudget.Make[int](width), weight: membudget.Make[float64](width),
		bands: bands,
	}
	next := 0
	for i := b.first; i <= min(b.last, width-1); i++ {
		m := mel(float64(i) * step)
		for next < bands && center(next) < m {
			next++
		}
		b.band[i] = next - 1
		from, to := least, center(0)
		if next > 0 {
			from, to = center(next-1), center(next)
		}
		b.weight[i] = (to - m) / (to - from)
	}
	return b
}

// sum computes the bands. It reports false if squared lacks frequencies that belong to bands.
func (b *melBank) sum(bands []float64, squared []float32) bool {
	if len(squared) <= b.last {
		return false
	}
	clear(bands)
	for i := b.first; i <= b.last; i++ {
		v := math.Sqrt(float64(squared[i]))
		falling := v * b.weight[i]
		if b.band[i] >= 0 {
			bands[b.band[i]] += falling
		}
		if b.band[i]+1 < b.bands {
			bands[b.band[i]+1] += v - falling
		}
	}
	return true
}
