package channelwise

import (
	"fmt"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
)

// Depthwise describes a depthwise convolution: channel c*Multiplier+q of the output depends on
// channel c of the input only. Filters are [rows, columns, Channels, Multiplier].
type Depthwise struct {
	Batch, Channels, Multiplier int
	Rows, Cols                  Span
}

func (s *Depthwise) imageIn() int  { return s.Rows.In * s.Cols.In * s.Channels }
func (s *Depthwise) imageOut() int { return s.Rows.Out * s.Cols.Out * s.Channels * s.Multiplier }
func (s *Depthwise) filter() int   { return s.Rows.Window * s.Cols.Window * s.Channels * s.Multiplier }

func (s *Depthwise) check(input, filter, output int) {
	if !s.Rows.valid() || !s.Cols.valid() || s.Batch < 0 || s.Channels < 0 || s.Multiplier < 1 ||
		input < s.Batch*s.imageIn() || filter < s.filter() || output < s.Batch*s.imageOut() {
		panic(fmt.Sprintf("channelwise: %+v does not fit an input of %d, a filter of %d and an output of %d elements",
			*s, input, filter, output))
	}
}

// Convolve computes y from x and the filter f.
func Convolve[T simd.Float](s *Depthwise, y, x, f []T) {
	s.check(len(x), len(f), len(y))
	switch {
	case s.Multiplier == 1:
		c := s.correlation(s.Rows.forward(), s.Cols.forward())
		overwrite(&c, s.Batch, y, x, f)
	case s.wasteful():
		clear(y[:s.Batch*s.imageOut()])
		s.products(func(i, j, k int) { y[k] += x[i] * f[j] })
	default:
		one := s.repeated()
		byImage(s, one.imageIn(), func(image int, wide []T) {
			repeat(wide, imageOf(x, image, s.imageIn()), s.Multiplier)
			Convolve(&one, imageOf(y, image, s.imageOut()), wide, f)
		})
	}
}

// ConvolveInputGrad computes dx, the gradient of Convolve's input, from the filter f and the
// gradient dy of the output.
func ConvolveInputGrad[T simd.Float](s *Depthwise, dx, dy, f []T) {
	s.check(len(dx), len(f), len(dy))
	switch {
	case s.Multiplier == 1:
		inputGrad(s, dx, dy, f)
	case s.wasteful():
		clear(dx[:s.Batch*s.imageIn()])
		s.products(func(i, j, k int) { dx[i] += dy[k] * f[j] })
	default:
		one := s.repeated()
		byImage(s, one.imageIn(), func(image int, wide []T) {
			ConvolveInputGrad(&one, wide, imageOf(dy, image, s.imageOut()), f)
			sumGroups(imageOf(dx, image, s.imageIn()), wide, s.Multiplier)
		})
	}
}

// inputGrad is ConvolveInputGrad for channels with one output each.
func inputGrad[T simd.Float](s *Depthwise, dx, dy, f []T) {
	rows, cols := s.Rows.backward(), s.Cols.backward()
	if len(rows) == 1 && len(cols) == 1 {
		c := s.correlation(rows[0], cols[0])
		overwrite(&c, s.Batch, dx, dy, f)
		return
	}
	byImage(s, 0, func(image int, _ []T) { // the phases of an image share cached data
		for _, row := range rows {
			for _, col := range cols {
				c := s.correlation(row, col)
				overwriteRows(&c, dx, dy, f, image*row.Out, (image+1)*row.Out)
			}
		}
	})
}

// ConvolveFilterGrad computes df, the gradient of Convolve's filter, from the input x and the
// gradient dy of the output.
func ConvolveFilterGrad[T simd.Float](s *Depthwise, df, x, dy []T) {
	s.check(len(x), len(df), len(dy))
	if s.wasteful() {
		clear(df[:s.filter()])
		s.products(func(i, j, k int) { df[j] += dy[k] * x[i] })
		return
	}
	one := s.repeated()
	c := one.correlation(s.Rows.forward(), s.Cols.forward())
	// Each block has its own filter.
	const blocks = 16
	if s.Multiplier > 1 {
		sumParts(df[:s.filter()], s.Batch, (s.Batch+blocks-1)/blocks, func(part []T, lo, hi int) {
			wide := getScratch[T](one.imageIn())
			defer putScratch(wide)
			for i := lo; i < hi; i++ {
				repeat(*wide, imageOf(x, i, s.imageIn()), s.Multiplier)
				accumulateRows(&c, part, *wide, imageOf(dy, i, s.imageOut()), 0, s.Rows.Out)
			}
		})
		return
	}
	rows := s.Batch * s.Rows.Out
	sumParts(df[:s.filter()], rows, max(c.rowsPerBlock(), (rows+blocks-1)/blocks), func(part []T, lo, hi int) {
		accumulateRows(&c, part, x, dy, lo, hi)
	})
}

// sumParts runs f on blocks of n iterations, each with its own zeroed part, and sets total to the
// sum of the parts.
func sumParts[T simd.Float](total []T, n, grain int, f func(part []T, lo, hi int)) {
	grain = max(grain, 1)
	parts := make([][]T, parallel.Blocks(n, grain))
	parallel.For(n, grain, func(lo, hi int) {
		part := make([]T, len(total))
		f(part, lo, hi)
		parts[lo/grain] = part
	})
	clear(total)
	for _, part := range parts {
		simd.Add(total, total, part)
	}
}

// repeated returns the convolution of an image whose channels have been repeated Multiplier times.
func (s *Depthwise) repeated() Depthwise {
	one := *s
	one.Channels, one.Multiplier = s.Channels*s.Multiplier, 1
	if s.Multiplier > 1 {
		one.Batch = 1
	}
	return one
}

// byImage calls visit for the images of a batch, on several cores, with n elements of scratch
// memory.
func byImage[T simd.Float](s *Depthwise, n int, visit func(image int, scratch []T)) {
	work := max(1, s.filter()*s.Rows.Out*s.Cols.Out)
	parallel.For(s.Batch, max(1, parallelWork/work), func(lo, hi int) {
		scratch := getScratch[T](n)
		defer putScratch(scratch)
		for i := lo; i < hi; i++ {
			visit(i, *scratch)
		}
	})
}

func imageOf[T any](x []T, image, n int) []T { return x[image*n : (image+1)*n] }

// repeat sets each group of m elements of dst to an element of src.
func repeat[T simd.Float](dst, src []T, m int) {
	if m == 2 {
		for len(src) >= 4 { // arrays need no bounds checks
			d, s := (*[8]T)(dst), (*[4]T)(src)
			d[0], d[1], d[2], d[3] = s[0], s[0], s[1], s[1]
			d[4], d[5], d[6], d[7] = s[2], s[2], s[3], s[3]
			dst, src = dst[8:], src[4:]
		}
	}
	for i, v := range src {
		group := dst[i*m : (i+1)*m]
		for q := range group {
			group[q] = v
		}
	}
}

// sumGroups sets each element of dst to the sum of a group of m elements of src.
func sumGroups[T simd.Float](dst, src []T, m int) {
	if m == 2 {
		for len(dst) >= 4 {
			d, s := (*[4]T)(dst), (*[8]T)(src)
			d[0], d[1], d[2], d[3] = s[0]+s[1], s[2]+s[3], s[4]+s[5], s[6]+s[7]
			dst, src = dst[4:], src[8:]
		}
	}
	for i := range dst {
		sum := T(0)
		for _, v := range src[i*m : (i+1)*m] {
			sum += v
		}
		dst[i] = sum
	}
}
