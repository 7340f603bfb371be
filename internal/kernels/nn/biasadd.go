package nn

import (
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	table := kernel.Table{
		tensor.Float32: biasAdd(biasLoops[float32]{simd.AddRow[float32], simd.AddScalar[float32]}),
		tensor.Float64: biasAdd(biasLoops[float64]{simd.AddRow[float64], simd.AddScalar[float64]}),
		tensor.Float16: biasAdd(anyBias[tensor.Float16Elem]()), tensor.BFloat16: biasAdd(anyBias[tensor.BFloat16Elem]()),
		tensor.Int8: biasAdd(anyBias[int8]()), tensor.Int16: biasAdd(anyBias[int16]()),
		tensor.Int32: biasAdd(anyBias[int32]()), tensor.Int64: biasAdd(anyBias[int64]()),
		tensor.Uint8: biasAdd(anyBias[uint8]()), tensor.Uint16: biasAdd(anyBias[uint16]()),
		tensor.Uint32: biasAdd(anyBias[uint32]()), tensor.Uint64: biasAdd(anyBias[uint64]()),
		tensor.Complex64: biasAdd(anyBias[complex64]()), tensor.Complex128: biasAdd(anyBias[complex128]()),
	}
	for name, attrs := range map[string][]string{
		"BiasAdd":   {"T: numbertype", dataFormat2D},
		"BiasAddV1": {"T: numbertype"},
	} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: "Adds bias to value along the channel dimension.",
				In: []string{"value: T", "bias: T"}, Out: []string{"output: T"},
				Attrs: attrs, Shape: biasAddShape,
			},
			Kernels: kernel.ByType("T", table),
		})
	}
}

// dataFormat2D is the attribute that selects the channel dimension of images: the last one, or the
// one after the batch.
const dataFormat2D = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"

// channelsFirst reports whether the attributes place the channel dimension right after the batch.
func channelsFirst(attrs opdef.Attrs) bool {
	f := attrs.String("data_format")
	return f == "NCHW" || f == "NCDHW"
}

// biasInput returns the shape of input 0, as far as it is known, and the index of its channel
// dimension. A negative index counts from the end.
func biasInput(c *opdef.ShapeContext) (s tensor.PartialShape, channels int, err error) {
	rank, channels := 2, -1
	if channelsFirst(c.Attrs) {
		rank, channels = 3, 1
	}
	s, err = opdef.WithRankAtLeast(c.In[0], rank)
	return s, channels, err
}

func biasAddShape(c *opdef.ShapeContext) error {
	s, channels, err := biasInput(c)
	if err != nil {
		return err
	}
	bias, err := opdef.WithRank(c.In[1], 1)
	if err != nil || !s.RankKnown() {
		return err
	}
	size, err := opdef.MergeDims(s.Dim(channels), bias.Dim(0))
	if err != nil {
		return err
	}
	dims := s.Dims()
	dims[(channels+len(dims))%len(dims)] = size
	c.SetAll(tensor.MakePartial(dims...))
	return nil
}

// channelLayout is the layout of a tensor viewed as [outer, channels, inner].
type channelLayout struct{ outer, channels, inner int }

func layoutOf(shape tensor.Shape, first bool) channelLayout {
	axis := len(shape) - 1
	if first {
		axis = 1
	}
	return channelLayout{
		int(shape[:axis].NumElements()), int(shape[axis]), int(shape[axis+1:].NumElements()),
	}
}

// biasLoops holds the inner loops that add a bias.
type biasLoops[T tensor.Elem] struct {
	rows  func(z, x, bias []T)   // adds the bias to each row of length len(bias)
	value func(z, x []T, bias T) // adds one value to all elements
}

// anyBias returns the loops for any numeric type.
func anyBias[T tensor.Elem]() biasLoops[T] {
	add := elementwise.Arithmetic[T](elementwise.Add)
	return biasLoops[T]{
		rows: func(z, x, bias []T) {
			for n := len(bias); len(z) > 0; z, x = z[n:], x[n:] {
				add(z[:n], x[:n], bias)
			}
		},
		value: func(z, x []T, bias T) {
			block := membudget.Make[T](min(len(z), scratchLen))
			for i := range block {
				block[i] = bias
			}
			for len(z) > 0 {
				n := min(len(z), len(block))
				add(z[:n], x[:n], block)
				z, x = z[n:], x[n:]
			}
		},
	}
}

func biasAdd[T tensor.Elem](loops biasLoops[T]) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		first := channelsFirst(c.Attrs)
		return kernel.Func(func(ctx *kernel.Context) error {
			in, bias := ctx.Input(0), ctx.Input(1)
			if err := checkBias(in.Shape(), bias.Shape(), first); err != nil {
				return err
			}
			l, x, b := layoutOf(in.Shape(), first), tensor.Values[T](in), tensor.Values[T](bias)
			out, err := ctx.Forward(0, 0)
			if err != nil || len(x) == 0 {
				return err
			}
			loops.add(tensor.Values[T](out), x, b, l)
			return nil
		}), nil
	}
}

func (loops biasLoops[T]) add(z, x, bias []T, l channelLayout) {
	if l.inner == 1 {
		n := l.channels
		parallel.For(l.outer, max(1, sumGrain/n), func(lo, hi int) { loops.rows(z[lo*n:hi*n], x[lo*n:hi*n], bias) })
		return
	}
	n := l.inner
	parallel.For(l.outer*l.channels, max(1, sumGrain/n), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			loops.value(z[i*n:(i+1)*n], x[i*n:(i+1)*n], bias[i%l.channels])
		}
	})
}

func checkBias(in, bias tensor.Shape, first bool) error {
	if len(in) < 2 {
		return status.InvalidArgumentf("Input tensor must be at least 2D: %v", in)
	}
	if len(bias) != 1 {
		return status.InvalidArgumentf("Biases must be 1D: %v", bias)
	}
	if l := layoutOf(in, first); int64(l.channels) != bias[0] {
		return status.InvalidArgumentf("Must provide as many biases as the last dimension of the input tensor: %v vs. %v", bias, in)
	}
	return nil
}
