package random

import (
	_ "embed"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "SobolSample",
			Doc:  "Generates num_results points of the Sobol sequence, after skipping the origin and skip points. dim is at most 1111.",
			In:   []string{"dim: int32", "num_results: int32", "skip: int32"}, Out: []string{"samples: dtype"},
			Attrs: []string{"dtype: {float32, float64} = float32"}, Shape: sobolShape,
		},
		Kernels: kernel.ByType("dtype", kernel.Table{
			tensor.Float32: kernel.Stateless(sobolSample[float32]), tensor.Float64: kernel.Stateless(sobolSample[float64]),
		}),
	})
}

func sobolShape(c *opdef.ShapeContext) error {
	dims := [3]int64{tensor.UnknownDim, tensor.UnknownDim, tensor.UnknownDim}
	for i := range dims {
		if _, err := opdef.WithRank(c.In[i], 0); err != nil {
			return err
		}
		if v, ok := shapefn.Ints(c, i); ok {
			dims[i] = v[0]
		}
	}
	c.Out[0] = shapefn.Of(dims[1], dims[0])
	return nil
}

// sobolData has a line for each dimension from the second on. It holds the coefficients of a
// primitive polynomial, as the bits of a number, followed by as many initial direction numbers as
// its degree.
//
//go:embed sobol.txt
var sobolData string

var sobolLines = sync.OnceValue(func() []string {
	var lines []string
	for line := range strings.Lines(sobolData) {
		if !strings.HasPrefix(line, "#") {
			//sizedmake:ok lines of a constant
			lines = append(lines, line)
		}
	}
	return lines
})

// directions returns n direction numbers of a dimension. Number k has k+1 bits.
func directions(dim, n int) []uint32 {
	m := membudget.Make[uint32](n)
	if dim == 0 {
		for k := range m {
			m[k] = 1
		}
		return m
	}
	fields := strings.Fields(sobolLines()[dim-1])
	number := func(i int) uint32 {
		v, _ := strconv.ParseUint(fields[i], 10, 32) // embedded data is valid
		return uint32(v)
	}
	polynomial, degree := number(0), len(fields)-1
	for k := range m {
		if k < degree {
			m[k] = number(k + 1)
			continue
		}
		m[k] = m[k-degree] ^ m[k-degree]<<degree
		for i := 1; i < degree; i++ {
			if polynomial>>(degree-1-i)&1 == 1 {
				m[k] ^= m[k-i] << i
			}
		}
	}
	return m
}

func sobolSample[T float32 | float64](ctx *kernel.Context) error {
	var v [3]int
	for i, name := range []string{"dim", "num_results", "skip"} {
		if ctx.Input(i).Rank() != 0 {
			return status.InvalidArgumentf("%s must be a scalar", name)
		}
		v[i] = int(tensor.Values[int32](ctx.Input(i))[0])
	}
	dim, n, skip := v[0], v[1], v[2]
	switch {
	case dim < 1:
		return status.InvalidArgumentf("dim must be at least one")
	case n < 1:
		return status.InvalidArgumentf("num_results must be at least one")
	case skip < 0:
		return status.InvalidArgumentf("skip must be non-negative")
	case skip >= math.MaxInt32-n:
		return status.InvalidArgumentf("num_results+skip must be less than 2147483647")
	case n >= math.MaxInt32/dim:
		return status.InvalidArgumentf("num_results*dim must be less than 2147483647")
	case dim > len(sobolLines())+1:
		return status.InvalidArgumentf("dim must be at most %d", len(sobolLines())+1)
	}
	out, err := ctx.Allocate(0, tensor.Shape{int64(n), int64(dim)})
	if err != nil {
		return err
	}
	z := tensor.Values[T](out)
	digits := bits.Len(uint(skip + n + 1))
	scale := T(math.Ldexp(1, -digits))
	for j := range dim {
		m := directions(j, digits)
		point := uint32(0)
		for k, d := range m {
			m[k] = d << (digits - k - 1)
			if at := skip + 1; (at^at>>1)>>k&1 == 1 {
				point ^= m[k]
			}
		}
		for i := range n {
			z[i*dim+j] = T(point) * scale
			// Consecutive Gray codes differ in the lowest zero bit of the counter.
			if k := bits.TrailingZeros(^uint(skip + i + 1)); k < digits {
				point ^= m[k]
			}
		}
	}
	return nil
}
