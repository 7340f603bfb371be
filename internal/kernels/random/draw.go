package random

import (
	"slices"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

const floatTypes = "{float16, bfloat16, float32, float64}"

// Attributes and inputs that are shared by the operations of an origin.
var (
	seedAttrs     = []string{"seed: int = 0", "seed2: int = 0"}
	bySeedAttrs   = []string{"T: {int32, int64} = int32", "Tseed: {int32, int64} = int64"}
	byKeyIn       = []string{"shape: Tshape", "key: uint64", "counter: uint64", "alg: int32"}
	byVariableIn  = []string{"resource: resource", "algorithm: int64", "shape: shape_dtype"}
	byShapeTypeIn = "shape_dtype: type = int64"
)

// drawn describes an operation that draws a tensor from a distribution.
type drawn struct {
	name      string
	in, attrs []string
	origin    newOrigin
	stateful  bool
	shape     opdef.ShapeFn
}

func init() {
	for _, d := range []struct {
		seeded, bySeed, byKey, byVariable, doc string
		table                                  func(newOrigin) kernel.Table
	}{
		{
			"RandomUniform", "StatelessRandomUniform", "StatelessRandomUniformV2", "StatefulUniform",
			"Outputs random values from a uniform distribution over [0, 1).", uniformTable,
		},
		{
			"RandomStandardNormal", "StatelessRandomNormal", "StatelessRandomNormalV2", "StatefulStandardNormalV2",
			"Outputs random values from a normal distribution with mean 0 and standard deviation 1.", normalTable,
		},
		{
			"TruncatedNormal", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2", "StatefulTruncatedNormal",
			"Outputs random values from a truncated normal distribution: values beyond two standard deviations are drawn again.", truncatedTable,
		},
	} {
		dtype := "dtype: " + floatTypes
		for _, op := range []drawn{
			{d.seeded, []string{"shape: T"}, with(seedAttrs, dtype, "T: {int32, int64}"), seeded, true, shapeOfInput(0)},
			{d.bySeed, []string{"shape: T", "seed: Tseed"}, with([]string{dtype + " = float32"}, bySeedAttrs...), bySeed, false, bySeedShape},
			{d.byKey, byKeyIn, []string{dtype + " = float32", "Tshape: {int32, int64} = int32"}, byKey, false, byKeyShape},
			{d.byVariable, byVariableIn, []string{"dtype: type = float32", byShapeTypeIn}, byVariable, true, byVariableShape},
		} {
			registerDrawn(op, d.doc+originDoc[op.name == d.seeded], d.table(op.origin))
		}
	}
	registerDrawn(drawn{
		"StatefulStandardNormal", []string{"resource: resource", "shape: shape_dtype"},
		[]string{"dtype: type = float32", byShapeTypeIn}, byTaggedVariable, true, shapeOfInput(1),
	}, "Outputs random values from a normal distribution. The generator is held by a variable.", normalTable(byTaggedVariable))
}

// originDoc describes the source of the generator, for operations without seeds of their own.
var originDoc = map[bool]string{false: " The generator is determined by inputs."}

func registerDrawn(op drawn, doc string, table kernel.Table) {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: op.name, Doc: doc, In: op.in, Out: []string{"output: dtype"}, Attrs: op.attrs, Stateful: op.stateful, Shape: op.shape,
		},
		Kernels: kernel.ByType("dtype", table),
	})
}

func with(list []string, more ...string) []string { return append(slices.Clip(list), more...) }

func uniformTable(o newOrigin) kernel.Table {
	return kernel.Table{
		tensor.Float16: drawing(o, "uniform", philox.UniformHalf), tensor.BFloat16: drawing(o, "uniform", philox.UniformBFloat),
		tensor.Float32: drawing(o, "uniform", philox.Uniform32), tensor.Float64: drawing(o, "uniform", philox.Uniform64),
	}
}

func normalTable(o newOrigin) kernel.Table {
	return kernel.Table{
		tensor.Float16: drawing(o, "normal", philox.NormalHalf), tensor.BFloat16: drawing(o, "normal", philox.NormalBFloat),
		tensor.Float32: drawing(o, "normal", philox.NormalFloat32), tensor.Float64: drawing(o, "normal", philox.NormalFloat64),
	}
}

func truncatedTable(o newOrigin) kernel.Table {
	return kernel.Table{
		tensor.Float16: drawing(o, "truncated", philox.TruncatedHalf), tensor.BFloat16: drawing(o, "truncated", philox.TruncatedBFloat),
		tensor.Float32: drawing(o, "truncated", philox.TruncatedFloat32), tensor.Float64: drawing(o, "truncated", philox.TruncatedFloat64),
	}
}

// drawing returns a kernel that fills a tensor with samples of a distribution. name is that of the
// kernels of devices for it.
func drawing[T tensor.Elem](o newOrigin, name string, dist *philox.Distribution[T]) kernel.New {
	return sampling(o, noCheck, func(*kernel.Context, *origin) (*philox.Distribution[T], error) { return dist, nil },
		func(*kernel.Context) (string, []any) { return name, nil })
}

// sampling is like drawing, for a distribution that depends on inputs. early runs before
// anything else. onDevice returns the name of the kernels of devices and their last arguments;
// it may be nil.
func sampling[T tensor.Elem](o newOrigin, early func(*kernel.Context) error,
	dist func(*kernel.Context, *origin) (*philox.Distribution[T], error), onDevice func(*kernel.Context) (string, []any),
) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		from := o(c)
		return kernel.Func(func(ctx *kernel.Context) error {
			if err := early(ctx); err != nil {
				return err
			}
			out, err := from.allocate(ctx)
			if err != nil || out.NumElements() == 0 {
				return err
			}
			d, err := dist(ctx, &from)
			if err != nil {
				return err
			}
			g, err := from.begin(ctx, out.NumElements())
			if err != nil {
				return err
			}
			if gpu := device.Of(out); gpu != nil {
				name, more := onDevice(ctx)
				return drawOnDevice(gpu, out, g, d.Group, name, more)
			}
			philox.Fill(tensor.Values[T](out), g, d)
			return nil
		}), nil
	}
}

// allocate creates output 0, after all checks of the origin.
func (o *origin) allocate(ctx *kernel.Context) (*tensor.Tensor, error) {
	shape, err := o.outputShape(ctx)
	if err != nil {
		return nil, err
	}
	return ctx.Allocate(0, shape)
}

// outputShape returns the output shape, which an input holds, after all checks of the origin.
func (o *origin) outputShape(ctx *kernel.Context) (tensor.Shape, error) {
	if o.late {
		shape, err := shapeInput(ctx, o.shape)
		if err != nil {
			return nil, err
		}
		return shape, o.check(ctx)
	}
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	return shapeInput(ctx, o.shape)
}

// shapeOfInput returns the shape function of operations whose output shape is the value of input i.
func shapeOfInput(i int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		s, err := shapefn.Input(c, i)
		c.SetAll(s)
		return err
	}
}

// seedShape checks that input i is a seed of two numbers.
func seedShape(c *opdef.ShapeContext, i int) error {
	seed, err := opdef.WithRank(c.In[i], 1)
	if err != nil {
		return err
	}
	return shapefn.CheckDim(seed.Dim(0), 2)
}

func bySeedShape(c *opdef.ShapeContext) error {
	if err := seedShape(c, 1); err != nil {
		return err
	}
	return shapeOfInput(0)(c)
}

func byKeyShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 1, 1, 0); err != nil {
		return err
	}
	if err := shapefn.CheckDim(c.In[1].Dim(0), 1); err != nil {
		return err
	}
	return shapeOfInput(0)(c)
}

func byVariableShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 1, 0); err != nil {
		return err
	}
	return shapeOfInput(2)(c)
}
