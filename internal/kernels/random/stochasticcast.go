package random

import (
	"math"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "StochasticCastToInt",
			Doc: "Stochastically casts a tensor to integers: rounds up or down at random, to the nearer integer with the higher probability. Values out of range " +
				"become the smallest or the largest integer, and NaN becomes 0.",
			In: []string{"input: Tin", "key: uint64", "counter: uint64", "alg: int32"}, Out: []string{"output: Tout"},
			Attrs: []string{"Tin: {float16, bfloat16, float32, float64}", "Tout: {int8, int16, int32}"}, Shape: stochasticShape,
		},
		Kernels: []kernel.Impl{
			stochastic[tensor.Float16Elem, int8](halves), stochastic[tensor.Float16Elem, int16](halves), stochastic[tensor.Float16Elem, int32](halves),
			stochastic[tensor.BFloat16Elem, int8](bfloats), stochastic[tensor.BFloat16Elem, int16](bfloats), stochastic[tensor.BFloat16Elem, int32](bfloats),
			stochastic[float32, int8](singles), stochastic[float32, int16](singles), stochastic[float32, int32](singles),
			stochastic[float64, int8](doubles), stochastic[float64, int16](doubles), stochastic[float64, int32](doubles),
		},
	})
}

func stochasticShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 1, 1, 0); err != nil {
		return err
	}
	c.Out[0] = c.In[0]
	return shapefn.CheckDim(c.In[1].Dim(0), 1)
}

// rounder rounds numbers of type T. It computes in float64.
type rounder[T tensor.Elem] struct {
	value func(T) float64
	round func(float64) float64 // to the precision of T
	// converts an output of the generator to numbers from 0 to 1
	unit  func(words *[4]uint32) [4]float64
	units int // count of those numbers
	// lanes is the number of elements that TensorFlow rounds to int32 at once, in groups of eight.
	// They take the numbers of one output in turn. Remaining elements, and those cast to other
	// types, each take the first number of an output if they need one.
	lanes int
}

const group = 8

var (
	halves = rounder[tensor.Float16Elem]{
		value: func(v tensor.Float16Elem) float64 { return float64(v.Float32()) },
		round: func(v float64) float64 { return float64(tensor.Float16Of(float32(v)).Float32()) },
		unit:  func(w *[4]uint32) [4]float64 { return [4]float64{float64(philox.UnitHalf(w[0]).Float32())} },
	}
	bfloats = rounder[tensor.BFloat16Elem]{
		value: func(v tensor.BFloat16Elem) float64 { return float64(v.Float32()) },
		round: func(v float64) float64 { return float64(tensor.BFloat16Of(float32(v)).Float32()) },
		unit:  func(w *[4]uint32) [4]float64 { return [4]float64{float64(philox.UnitBFloat(w[0]).Float32())} },
	}
	singles = rounder[float32]{
		value: func(v float32) float64 { return float64(v) },
		round: func(v float64) float64 { return float64(float32(v)) },
		unit: func(w *[4]uint32) (out [4]float64) {
			for i := range out {
				out[i] = float64(philox.Unit32(w[i]))
			}
			return out
		},
		units: 4, lanes: 8,
	}
	doubles = rounder[float64]{
		value: func(v float64) float64 { return v },
		round: func(v float64) float64 { return v },
		unit: func(w *[4]uint32) [4]float64 {
			return [4]float64{philox.Unit64(w[0], w[1]), philox.Unit64(w[2], w[3])}
		},
		units: 2, lanes: 4,
	}
)

// stochastically rounds v using a number from 0 to 1.
func (r *rounder[T]) stochastically(v, unit float64) float64 {
	if v < 0 {
		return math.Floor(r.round(v + unit))
	}
	return math.Floor(r.round(r.round(v+1) - unit))
}

func stochastic[T tensor.Elem, I int8 | int16 | int32](r rounder[T]) kernel.Impl {
	var whole I
	least, most := float64(math.MinInt8), float64(math.MaxInt8)
	switch any(whole).(type) {
	case int16:
		least, most = math.MinInt16, math.MaxInt16
	case int32:
		least, most = math.MinInt32, math.MaxInt32
	}
	least, most = r.round(least), r.round(most)
	_, together := any(whole).(int32)
	return kernel.Impl{
		Types: []kernel.Constraint{kernel.OfType("Tin", tensor.DTypeOf[T]()), kernel.OfType("Tout", tensor.DTypeOf[I]())},
		New: kernel.Stateless(func(ctx *kernel.Context) error {
			if err := checkKey(ctx, 1, 1); err != nil {
				return err
			}
			if alg, err := algorithm(ctx, 3); err != nil || alg != algPhilox {
				return status.InvalidArgumentf("Unsupported algorithm id: %d", tensor.Value[int32](ctx.Input(3)))
			}
			out, err := ctx.AllocateLike(0, ctx.Input(0))
			if err != nil {
				return err
			}
			// As in TensorFlow, the key is the counter and the counter's first word is the upper
			// half of the key.
			gen := philox.New(tensor.Values[uint64](ctx.Input(2))[0], tensor.Value[uint64](ctx.Input(1)))
			x, z := tensor.Values[T](ctx.Input(0)), tensor.Values[I](out)
			at := 0
			grouped := 0
			if together && r.lanes > 0 {
				grouped = len(x) / group * group
			}
			for ; at < grouped; at += r.lanes {
				words := gen.Next()
				units := r.unit(&words)
				for i := range r.lanes {
					z[at+i] = narrow[I](r.limited(r.value(x[at+i]), least, most, func() float64 { return units[i%r.units] }))
				}
			}
			for ; at < len(x); at++ {
				z[at] = narrow[I](r.limited(r.value(x[at]), least, most, func() float64 {
					words := gen.Next()
					return r.unit(&words)[0]
				}))
			}
			return nil
		}),
	}
}

// limited rounds v and clamps it. It calls unit only if it needs a random number.
func (r *rounder[T]) limited(v, least, most float64, unit func() float64) float64 {
	switch {
	case v != v:
		return 0
	case v >= most:
		return most
	case v <= least:
		return least
	case math.Floor(v) == v:
		return v
	}
	return r.stochastically(v, unit())
}

// narrow converts through int32, as processors do.
func narrow[I int8 | int16 | int32](v float64) I {
	whole := int32(math.MinInt32)
	if v >= -(1<<31) && v < 1<<31 {
		whole = int32(v)
	}
	return I(whole)
}
