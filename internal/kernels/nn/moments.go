package nn

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/sys/membudget"
)

const (
	momentRows  = 256     // rows that are summed in single precision
	momentBlock = 1 << 17 // elements that one core processes at a time
)

// rowGrain returns the number of rows of all channels in a block.
func (l channelLayout) rowGrain() int { return max(1, momentBlock/l.channels) }

// rowBlocks splits the rows into blocks and calls visit with the number and the bounds of each, on
// several cores.
func (l channelLayout) rowBlocks(visit func(block, lo, hi int)) {
	grain := l.rowGrain()
	parallel.For(l.outer, grain, func(lo, hi int) { visit(lo/grain, lo*l.channels, hi*l.channels) })
}

// moments holds statistics of a subset of each channel's elements: their number, their means, and
// the sums of their squared differences from the means.
type moments struct {
	n             float64
	mean, squares []float64
}

// add combines the moments of two sets of elements (Chan, Golub and LeVeque, 1979).
func (m *moments) add(other moments) {
	total := m.n + other.n
	for c := range m.mean {
		d := other.mean[c] - m.mean[c]
		// avoids the difference of the means, which is NaN for infinities of the same sign
		m.mean[c] = (m.mean[c]*m.n + other.mean[c]*other.n) / total
		m.squares[c] += other.squares[c] + d*d*m.n*other.n/total
	}
	m.n = total
}

// momentsOf returns the mean of each channel and the sum of the squared differences from it.
func momentsOf(x []float32, l channelLayout) (mean, squares []float64) {
	if l.inner > 1 {
		n := float64(l.outer * l.inner)
		mean = floatSums[float32]().byChannel(x, l)
		for c := range mean {
			mean[c] /= n
		}
		shift := values(l.channels, func(c int) float32 { return float32(-mean[c]) })
		return mean, sumsOf(l, func(tmp []float32, lo, hi, c int) {
			shift.add(tmp, x[lo:hi], c)
			simd.Square(tmp, tmp)
		})
	}
	parts := membudget.Make[moments](parallel.Blocks(l.outer, l.rowGrain()))
	l.rowBlocks(func(block, lo, hi int) { parts[block] = rowMoments(x[lo:hi], l.channels) })
	for i := range parts[1:] {
		parts[0].add(parts[i+1])
	}
	return parts[0].mean, parts[0].squares
}

// rowMoments returns the moments of rows of n channels. It sums differences from the mean of the
// first rows. That mean is close enough to the final one to keep the squares accurate.
func rowMoments(x []float32, n int) moments {
	rows := len(x) / n
	scratch := membudget.Make[float32](3 * n)
	shift, sum, squares := scratch[:n], scratch[n:2*n], scratch[2*n:]
	few := min(rows, 16)
	simd.SumColumns(shift, x[:few*n])
	simd.DivScalar(shift, shift, float32(few))
	for c, v := range shift {
		if v-v != 0 {
			shift[c] = 0 // infinities of one sign have an infinite mean
		}
	}
	m := moments{float64(rows), membudget.Make[float64](n), membudget.Make[float64](n)}
	for lo := 0; lo < len(x); lo += momentRows * n {
		clear(scratch[n:])
		simd.Moments(sum, squares, x[lo:min(lo+momentRows*n, len(x))], shift)
		for c, v := range sum {
			m.mean[c] += float64(v)
			m.squares[c] += float64(squares[c])
		}
	}
	for c, v := range m.mean {
		d := v / m.n
		m.mean[c] = float64(shift[c]) + d
		m.squares[c] = max(0, m.squares[c]-v*d)
	}
	return m
}

// productsOf returns for each channel the sums of dy and of dy*(x - mean).
func productsOf(dy, x, mean []float32, l channelLayout) (sums, products []float64) {
	if l.inner > 1 {
		shift := values(l.channels, func(c int) float32 { return -mean[c] })
		return floatSums[float32]().byChannel(dy, l), sumsOf(l, func(tmp []float32, lo, hi, c int) {
			shift.add(tmp, x[lo:hi], c)
			simd.Mul(tmp, tmp, dy[lo:hi])
		})
	}
	n := l.channels
	parts := membudget.Make[float64](parallel.Blocks(l.outer, l.rowGrain()) * 2 * n)
	l.rowBlocks(func(block, lo, hi int) {
		part, scratch := parts[block*2*n:][:2*n], membudget.Make[float32](2*n)
		for ; lo < hi; lo += momentRows * n {
			to := min(lo+momentRows*n, hi)
			clear(scratch)
			simd.Products(scratch[:n], scratch[n:], dy[lo:to], x[lo:to], mean)
			for c, v := range scratch {
				part[c] += float64(v)
			}
		}
	})
	total := parts[:2*n]
	for i, v := range parts[2*n:] {
		total[i%(2*n)] += v
	}
	return total[:n], total[n:]
}
