package array

import (
	"math"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "Range", Doc: "Returns the sequence start, start+delta, … that ends before limit.",
		In:  []string{"start: Tidx", "limit: Tidx", "delta: Tidx"},
		Out: []string{"output: Tidx"},
		Attrs: []string{
			"Tidx: {bfloat16, float16, float32, float64, int8, int16, int32, int64, uint16, uint32, uint64} = int32",
		},
		Shape: rangeShape,
	}, rangeOp)
	kernel.RegisterFunc(opdef.Def{
		Name: "LinSpace", Doc: "Returns num evenly spaced values from start to stop.",
		In:    []string{"start: T", "stop: T", "num: Tidx"},
		Out:   []string{"output: T"},
		Attrs: []string{"T: {bfloat16, float16, float32, float64}", "Tidx: {int32, int64} = int32"},
		Shape: linSpaceShape,
	}, linSpace)
}

// scalarInputs checks that the named inputs of a shape function are scalars.
func scalarInputs(c *opdef.ShapeContext, names ...string) error {
	for i, name := range names {
		if _, err := opdef.WithRank(c.In[i], 0); err != nil {
			return status.From(err).Annotate("\n\t for '%s'", name)
		}
	}
	return nil
}

func rangeShape(c *opdef.ShapeContext) error {
	if err := scalarInputs(c, "start", "limit", "delta"); err != nil {
		return err
	}
	c.Out[0] = shapefn.Of(shapefn.Unknown)
	var t [3]*tensor.Tensor
	for i := range t {
		if t[i] = c.Value(i); t[i] == nil {
			return nil
		}
	}
	n, err := rangeLen(t[0], t[1], t[2], "")
	if err == nil {
		c.Out[0] = shapefn.Of(n)
	}
	return err
}

// rangeLen returns the number of values of a range. zero is appended to the error for a delta of
// zero.
func rangeLen(start, limit, delta *tensor.Tensor, zero string) (int64, error) {
	if start.DType().IsInteger() {
		return intRangeLen(intarg.Scalar(start), intarg.Scalar(limit), intarg.Scalar(delta), zero)
	}
	a, b, d := floatScalar(start), floatScalar(limit), floatScalar(delta)
	if err := checkRange(a, b, d, zero); err != nil {
		return 0, err
	}
	round := rounding(start.DType())
	n := math.Ceil(math.Abs(round(round(b-a) / d)))
	if !(n <= math.MaxInt64) {
		return 0, status.InvalidArgumentf("Requires ((limit - start) / delta) <= %d", int64(math.MaxInt64))
	}
	return int64(n), nil
}

func checkRange[T int64 | float64](start, limit, delta T, zero string) error {
	format := func(v T) string {
		if f, ok := any(v).(float64); ok {
			return shortFloat(f)
		}
		return shortInt(int64(v))
	}
	switch {
	case delta == 0 && zero != "":
		return status.InvalidArgumentf("Requires delta != 0%s", zero)
	case delta > 0 && start > limit:
		return status.InvalidArgumentf("Requires start <= limit when delta > 0: %s/%s", format(start), format(limit))
	case delta < 0 && start < limit:
		return status.InvalidArgumentf("Requires start >= limit when delta < 0: %s/%s", format(start), format(limit))
	case delta == 0:
		return status.InvalidArgumentf("Requires delta != 0")
	}
	return nil
}

func intRangeLen(start, limit, delta int64, zero string) (int64, error) {
	if err := checkRange(start, limit, delta, zero); err != nil {
		return 0, err
	}
	span, step := uint64(limit)-uint64(start), uint64(delta)
	if delta < 0 {
		span, step = -span, -step
	}
	n := span / step
	if span%step != 0 {
		n++
	}
	if n > math.MaxInt64 {
		return 0, status.InvalidArgumentf("Requires ((limit - start) / delta) <= %d", int64(math.MaxInt64))
	}
	return int64(n), nil
}

func rangeOp(ctx *kernel.Context) error {
	start, limit, delta := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	for i, name := range []string{"start", "limit", "delta"} {
		if t := ctx.Input(i); t.NumElements() != 1 || t.Rank() > 1 {
			return status.InvalidArgumentf("%s must be a scalar, not shape %v", name, t.Shape())
		}
	}
	n, err := rangeLen(start, limit, delta, ": 0")
	if err != nil {
		return err
	}
	out, err := ctx.Allocate(0, tensor.Shape{n})
	if err != nil {
		return err
	}
	if d := device.Of(out); d != nil {
		var args []any
		switch out.DType() {
		case tensor.Int64:
			args = []any{tensor.Value[int64](start), tensor.Value[int64](delta)}
		case tensor.Float32:
			args = []any{tensor.Value[float32](start), tensor.Value[float32](delta)}
		default:
			args = []any{tensor.Value[float64](start), tensor.Value[float64](delta)}
		}
		return d.LaunchLine("range_"+source.TypeName(out.DType()), n, append([]any{out, n}, args...)...)
	}
	switch out.DType() {
	case tensor.Int32:
		progression(out, tensor.Value[int32](start), tensor.Value[int32](delta))
	case tensor.Int64:
		progression(out, tensor.Value[int64](start), tensor.Value[int64](delta))
	case tensor.Float32:
		progression(out, tensor.Value[float32](start), tensor.Value[float32](delta))
	case tensor.Float64:
		progression(out, tensor.Value[float64](start), tensor.Value[float64](delta))
	default:
		return roundedProgression(out, floatScalar(start), floatScalar(delta))
	}
	return nil
}

func progression[T int32 | int64 | float32 | float64](out *tensor.Tensor, start, delta T) {
	v := tensor.Values[T](out)
	begun := v[:min(len(v), progressionBlock)]
	for i := range begun {
		step := T(i) * delta
		v[i] = start + step
	}
	switch v := any(v).(type) {
	case []int32:
		extendIntegers(v, int32(delta))
	case []int64:
		extendIntegers(v, int64(delta))
	default:
		rest := tensor.Values[T](out)
		for i := len(begun); i < len(rest); i++ {
			step := T(i) * delta
			rest[i] = start + step
		}
	}
}

// progressionBlock is the number of leading elements of a progression that are computed one by one.
const progressionBlock = 512

// extendIntegers extends an integer progression whose first block is set. Integers wrap around, so
// repeated addition equals multiplication.
func extendIntegers[T int32 | int64](v []T, delta T) {
	var ahead [progressionBlock]T
	for i := range ahead {
		ahead[i] = progressionBlock * delta
	}
	for lo := progressionBlock; lo < len(v); lo += progressionBlock {
		next := v[lo:min(lo+progressionBlock, len(v))]
		simd.AddInts(next, v[lo-progressionBlock:], ahead[:])
	}
}

// roundedProgression computes a progression of a 16-bit type. It rounds after every operation, as
// TensorFlow does.
func roundedProgression(out *tensor.Tensor, start, delta float64) error {
	round := rounding(out.DType())
	at := func(i int) float32 { return float32(start + round(round(float64(i))*delta)) }
	switch out.DType() {
	case tensor.Float16:
		for i := range tensor.Values[tensor.Float16Elem](out) {
			tensor.Values[tensor.Float16Elem](out)[i] = tensor.Float16Of(at(i))
		}
	case tensor.BFloat16:
		for i := range tensor.Values[tensor.BFloat16Elem](out) {
			tensor.Values[tensor.BFloat16Elem](out)[i] = tensor.BFloat16Of(at(i))
		}
	default:
		return status.InvalidArgumentf("Range of type %v is not supported", out.DType())
	}
	return nil
}

// rounding returns the function that rounds to a floating-point type.
func rounding(dtype tensor.DType) func(float64) float64 {
	switch dtype {
	case tensor.Float16:
		return func(x float64) float64 { return float64(tensor.Float16Of(float32(x)).Float32()) }
	case tensor.BFloat16:
		return func(x float64) float64 { return float64(tensor.BFloat16Of(float32(x)).Float32()) }
	case tensor.Float32:
		return func(x float64) float64 { return float64(float32(x)) }
	default:
		return func(x float64) float64 { return x }
	}
}

func floatScalar(t *tensor.Tensor) float64 {
	switch t.DType() {
	case tensor.Float16:
		return float64(tensor.Value[tensor.Float16Elem](t).Float32())
	case tensor.BFloat16:
		return float64(tensor.Value[tensor.BFloat16Elem](t).Float32())
	case tensor.Float32:
		return float64(tensor.Value[float32](t))
	case tensor.Float64:
		return tensor.Value[float64](t)
	default:
		return float64(intarg.Scalar(t))
	}
}

func linSpaceShape(c *opdef.ShapeContext) error {
	if err := scalarInputs(c, "start", "stop", "num"); err != nil {
		return err
	}
	c.Out[0] = shapefn.Of(shapefn.Unknown)
	num, known := c.ScalarValue(2)
	if !known {
		return nil
	}
	if num <= 0 {
		return status.InvalidArgumentf("Requires num > 0: %d", num)
	}
	c.Out[0] = shapefn.Of(num)
	return nil
}

func linSpace(ctx *kernel.Context) error {
	for i, name := range []string{"start", "stop", "num"} {
		if t := ctx.Input(i); t.Rank() != 0 {
			return status.InvalidArgumentf("%s must be a scalar, not shape %v", name, t.Shape())
		}
	}
	num := intarg.Scalar(ctx.Input(2))
	if num <= 0 {
		return status.InvalidArgumentf("Requires num > 0: %d", num)
	}
	out, err := ctx.Allocate(0, tensor.Shape{num})
	if err != nil {
		return err
	}
	switch out.DType() {
	case tensor.Float32:
		spread(tensor.Values[float32](out), tensor.Value[float32](ctx.Input(0)), tensor.Value[float32](ctx.Input(1)))
	case tensor.Float64:
		spread(tensor.Values[float64](out), tensor.Value[float64](ctx.Input(0)), tensor.Value[float64](ctx.Input(1)))
	default:
		return status.InvalidArgumentf("LinSpace of type %v is not supported", out.DType())
	}
	return nil
}

func spread[T float32 | float64](v []T, start, stop T) {
	v[0] = start
	if len(v) == 1 {
		return
	}
	step := (stop - start) / T(len(v)-1)
	for i := 1; i < len(v)-1; i++ {
		d := step * T(i)
		v[i] = start + d
	}
	v[len(v)-1] = stop
}
