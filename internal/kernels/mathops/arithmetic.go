package mathops

import (
	"math"
	"math/cmplx"

	"github.com/weft-ml/weft/internal/numeric/simd"
	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const plain = "{bfloat16, float16, float32, float64, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}"
	add := arithmetic(elementwise.Add, simd.Add[float32], simd.Add[float64])
	vector(add, simd.Add[float32], simd.AddScalar[float32], nil)
	vector(add, simd.Add[float64], simd.AddScalar[float64], nil)
	binary(opdef.Def{
		Name: "AddV2", Doc: "Adds two tensors element by element, with broadcasting.", Commutative: true, Aggregate: true,
	}, "{bfloat16, float16, float32, float64, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128}", add)
	binary(opdef.Def{Name: "Add", Doc: "Adds two tensors element by element, with broadcasting. Strings are concatenated."},
		"{bfloat16, float16, float32, float64, uint8, int8, int16, int32, int64, complex64, complex128, string}",
		elementwise.Union(add, kernel.Table{
			tensor.String: elementwise.Loops[string, string]{
				Each: concatenate, Cost: 50,
			}.Kernel(),
		}))

	sub := arithmetic(elementwise.Sub, simd.Sub[float32], simd.Sub[float64])
	vector(sub, simd.Sub[float32], simd.SubScalar[float32], simd.ScalarSub[float32])
	vector(sub, simd.Sub[float64], simd.SubScalar[float64], simd.ScalarSub[float64])
	binary(opdef.Def{Name: "Sub", Doc: "Subtracts y from x element by element, with broadcasting."},
		"{bfloat16, float16, float32, float64, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, uint64}", sub)

	mul := arithmetic(elementwise.Mul, simd.Mul[float32], simd.Mul[float64])
	vector(mul, simd.Mul[float32], simd.MulScalar[float32], nil)
	vector(mul, simd.Mul[float64], simd.MulScalar[float64], nil)
	binary(opdef.Def{Name: "Mul", Doc: "Multiplies two tensors element by element, with broadcasting.", Commutative: true},
		"{bfloat16, float16, float32, float64, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}", mul)

	div := elementwise.Union(integers(truncateQuotient, errDivideByZero), floatQuotients(), elementwise.Complexes2(cheap, func(x, y complex128) complex128 { return x / y }))
	binary(opdef.Def{Name: "Div", Doc: "Divides x by y element by element, with broadcasting. Integer quotients are truncated toward zero."}, plain, div)
	binary(opdef.Def{Name: "RealDiv", Doc: "Divides x by y element by element, with broadcasting, for real types."}, plain,
		elementwise.Union(floatQuotients(), elementwise.Complexes2(cheap, func(x, y complex128) complex128 { return x / y })))
	binary(opdef.Def{Name: "TruncateDiv", Doc: "Divides integers x by y element by element, with broadcasting, and truncates toward zero."},
		plain, elementwise.Union(integers(truncateQuotient, errUnexpected), elementwise.Floats2(costly, func(x, y float64) float64 { return math.Trunc(x / y) })))
	binary(opdef.Def{Name: "FloorDiv", Doc: "Divides x by y element by element, with broadcasting, and rounds toward minus infinity."},
		plain, elementwise.Union(integers(floorQuotient, errDivideByZero), elementwise.Floats2(costly, func(x, y float64) float64 { return math.Floor(x / y) })))
	binary(opdef.Def{Name: "FloorMod", Doc: "Computes the remainder of the division that rounds toward minus infinity. It has the sign of y."},
		"{int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, float16, float32, float64}",
		elementwise.Union(integers(floorRemainder, errDivideByZero), elementwise.Floats2(costly, floorMod)))
	truncated := func(byZero error) kernel.Table {
		return elementwise.Union(integers(truncateRemainder, byZero), elementwise.Floats2(costly, remainder))
	}
	binary(opdef.Def{Name: "Mod", Doc: "Computes the remainder of the division that truncates toward zero. It has the sign of x."},
		"{int32, int64, float16, float16, bfloat16, float32, float64}", truncated(errDivideByZero))
	binary(opdef.Def{Name: "TruncateMod", Doc: "Computes the remainder of the division that truncates toward zero. It has the sign of x."},
		"{int32, int64, bfloat16, float16, float32, float64}", truncated(errUnexpected))

	binary(opdef.Def{Name: "MulNoNan", Doc: "Multiplies x by y element by element, with broadcasting. Returns 0 if y is 0, even if x is infinite or NaN."},
		"{bfloat16, float16, float32, float64, complex64, complex128}",
		unlessZero(simd.MulNoNaN[float32], simd.MulNoNaN[float64], func(x, y complex128) complex128 { return x * y }))
	binary(opdef.Def{Name: "DivNoNan", Doc: "Divides x by y element by element, with broadcasting. Returns 0 if y is 0."},
		"{float16, float32, bfloat16, float64, complex64, complex128}",
		unlessZero(simd.DivNoNaN[float32], simd.DivNoNaN[float64], func(x, y complex128) complex128 { return x / y }))

	diff := arithmetic(elementwise.Sub, simd.SquaredDifference[float32], simd.SquaredDifference[float64])
	vector(diff, simd.SquaredDifference[float32], squaredDistance[float32], nil)
	vector(diff, simd.SquaredDifference[float64], squaredDistance[float64], nil)
	squaredInt[int32](diff)
	squaredInt[int64](diff)
	diff = elementwise.Union(diff, elementwise.Complexes2(cheap, func(x, y complex128) complex128 { return (x - y) * cmplx.Conj(x-y) }))
	binary(opdef.Def{Name: "SquaredDifference", Doc: "Computes the square of x - y. For complex types, it multiplies the difference by its conjugate.", Commutative: true},
		"{bfloat16, float16, float32, float64, int32, int64, complex64, complex128}", diff)

	const real = "{bfloat16, float16, float32, float64, int8, uint8, int16, uint16, int32, uint32, int64, uint64}"
	binary(opdef.Def{Name: "Maximum", Doc: "Computes the larger of x and y, element by element, with broadcasting."}, real,
		extremes(elementwise.Max, simd.Max[float32], simd.Max[float64], simd.MaxScalar[float32], simd.MaxScalar[float64]))
	binary(opdef.Def{Name: "Minimum", Doc: "Computes the smaller of x and y, element by element, with broadcasting."}, real,
		extremes(elementwise.Min, simd.Min[float32], simd.Min[float64], simd.MinScalar[float32], simd.MinScalar[float64]))
}

// squaredDistance computes z = (x - y)², for example for the variance of rows.
func squaredDistance[T simd.Float](z, x []T, y T) {
	simd.SubScalar(z, x, y)
	simd.Square(z, z)
}

// binary registers an elementwise operation on two tensors of type T. Kernels for types outside of
// the set of T are omitted.
func binary(def opdef.Def, types string, table kernel.Table) {
	if def.In == nil {
		def.In = []string{"x: T", "y: T"}
	}
	if def.Out == nil {
		def.Out = []string{"z: T"}
	}
	def.Attrs = []string{"T: " + types}
	def.Shape = opdef.BroadcastShape
	kernel.Register(kernel.Op{Def: def, Kernels: byT(allowed(types, table))})
}

// allowed returns the rows of a table for the types in a type set of an operation definition.
func allowed(types string, table kernel.Table) kernel.Table {
	set, err := opdef.ParseTypes(types)
	if err != nil {
		panic(err)
	}
	//sizedmake:ok the number of element types
	out := make(kernel.Table, len(set))
	for _, t := range set {
		if n, ok := table[t]; ok {
			out[t] = n
		}
	}
	return out
}

// arithmetic returns the kernels of an operation for all numeric types. The floating-point types
// use the given vector loops.
func arithmetic(op elementwise.Op, loop32 func(z, x, y []float32), loop64 func(z, x, y []float64)) kernel.Table {
	t := elementwise.FloatLoops2(cheap, loop32, loop64)
	number[int8](t, op)
	number[int16](t, op)
	number[int32](t, op)
	number[int64](t, op)
	number[uint8](t, op)
	number[uint16](t, op)
	number[uint32](t, op)
	number[uint64](t, op)
	if op == elementwise.Add || op == elementwise.Sub || op == elementwise.Mul {
		number[complex64](t, op)
		number[complex128](t, op)
	}
	return t
}

func number[T tensor.Elem](t kernel.Table, op elementwise.Op) {
	row(t, elementwise.Loops[T, T]{Each: elementwise.Arithmetic[T](op), Cost: cheap})
}

// vector replaces a kernel by loops with special forms for a scalar operand. If left is nil, the
// operation commutes.
func vector[T simd.Float](t kernel.Table, each func(z, x, y []T), right func(z, x []T, y T), left func(z []T, x T, y []T)) {
	if left == nil {
		left = func(z []T, x T, y []T) { right(z, y, x) }
	}
	t[tensor.DTypeOf[T]()] = elementwise.Loops[T, T]{Each: each, Left: left, Right: right, Cost: cheap}.Kernel()
}

func extremes(op elementwise.Op, each32 func(z, x, y []float32), each64 func(z, x, y []float64),
	right32 func(z, x []float32, y float32), right64 func(z, x []float64, y float64),
) kernel.Table {
	t := arithmetic(op, each32, each64)
	vector(t, each32, right32, nil)
	vector(t, each64, right64, nil)
	return t
}

func floatQuotients() kernel.Table {
	t := elementwise.FloatLoops2(cheap, simd.Div[float32], simd.Div[float64])
	vector(t, simd.Div[float32], simd.DivScalar[float32], simd.ScalarDiv[float32])
	vector(t, simd.Div[float64], simd.DivScalar[float64], simd.ScalarDiv[float64])
	return t
}

func squaredInt[T int32 | int64](t kernel.Table) {
	row(t, elementwise.Loops[T, T]{Each: elementwise.Map2(func(x, y T) T { return (x - y) * (x - y) }), Cost: cheap})
}

// unlessZero returns the kernels of a function that is 0 if its second operand is 0. The real loops
// handle this case themselves; the complex function does not.
func unlessZero(f32 func(z, x, y []float32), f64 func(z, x, y []float64), c func(x, y complex128) complex128) kernel.Table {
	return elementwise.Union(
		elementwise.FloatLoops2(cheap, f32, f64),
		elementwise.Complexes2(cheap+1, func(x, y complex128) complex128 {
			if y == 0 {
				return 0
			}
			return c(x, y)
		}))
}

// concatenate sets z to the texts of x followed by those of y. It panics as [membudget.Make] does:
// texts that share their memory have sums that do not.
func concatenate(z, x, y []string) {
	var meter membudget.Meter
	for i := range z {
		meter.MustTake(len(x[i]) + len(y[i]))
		z[i] = x[i] + y[i]
	}
}
