package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func TestElementwise(t *testing.T) {
	c128 := tensor.Complex128
	checkRules(t, []ruleCase{
		{"Neg", []input{in(3)}, one(op.Neg)},
		{"Abs", []input{in(5)}, one(op.Abs)},
		{"Reciprocal", []input{in(5)}, one(op.Reciprocal)},
		{"Inv", []input{in(5)}, one(op.Inv)},
		{"Square", []input{in(5)}, one(op.Square)},
		{"Square/complex", []input{in(5).of(c128)}, one(op.Square)},
		{"Sqrt", []input{in(5).within(0.2, 2)}, one(op.Sqrt)},
		{"Rsqrt", []input{in(5).within(0.2, 2)}, one(op.Rsqrt)},
		{"Exp", []input{in(5)}, one(op.Exp)},
		{"Exp/complex", []input{in(5).of(c128)}, one(op.Exp)},
		{"Expm1", []input{in(5)}, one(op.Expm1)},
		{"Log", []input{in(5).within(0.2, 2)}, one(op.Log)},
		{"Log/complex", []input{in(5).within(0.2, 2).of(c128)}, one(op.Log)},
		{"Log1p", []input{in(5).within(-0.5, 2)}, one(op.Log1p)},
		{"Sinh", []input{in(5)}, one(op.Sinh)},
		{"Cosh", []input{in(5)}, one(op.Cosh)},
		{"Tanh", []input{in(5)}, one(op.Tanh)},
		{"Tanh/complex", []input{in(5).of(c128)}, one(op.Tanh)},
		{"Sigmoid", []input{in(5)}, one(op.Sigmoid)},
		{"Sin", []input{in(5)}, one(op.Sin)},
		{"Cos", []input{in(5)}, one(op.Cos)},
		{"Tan", []input{in(5)}, one(op.Tan)},
		{"Asin", []input{in(5).within(-0.8, 0.8)}, one(op.Asin)},
		{"Acos", []input{in(5).within(-0.8, 0.8)}, one(op.Acos)},
		{"Atan", []input{in(5)}, one(op.Atan)},
		{"Asinh", []input{in(5)}, one(op.Asinh)},
		{"Acosh", []input{in(5).within(1.2, 3)}, one(op.Acosh)},
		{"Atanh", []input{in(5).within(-0.8, 0.8)}, one(op.Atanh)},
		{"Erf", []input{in(5)}, one(op.Erf)},
		{"Erfc", []input{in(5)}, one(op.Erfc)},
		{"Cast", []input{in(5)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Cast(s, x, tensor.Float64) })},
	})
}

func TestArithmetic(t *testing.T) {
	row := []input{in(2, 3), in(3)}
	checkRules(t, []ruleCase{
		{"Add", row, two(op.Add)},
		{"AddV2", []input{in(2, 1), in(1, 3)}, two(op.AddV2)},
		{"Sub", row, two(op.Sub)},
		{"Mul", row, two(op.Mul)},
		{"Mul/complex", []input{in(3).of(tensor.Complex128), in().of(tensor.Complex128)}, two(op.Mul)},
		{"MulNoNan", row, two(op.MulNoNan)},
		{"RealDiv", row, two(op.RealDiv)},
		{"Div", row, two(op.Div)},
		{"DivNoNan", row, two(op.DivNoNan)},
		{"FloorMod", []input{in(2, 3).within(1, 2), in(3).within(0.3, 0.7)}, two(op.FloorMod)},
		{"Pow", []input{in(2, 3).within(0.2, 2), in(3)}, two(op.Pow)},
		{"SquaredDifference", row, two(op.SquaredDifference)},
		{"Maximum", row, two(op.Maximum)},
		{"Minimum", row, two(op.Minimum)},
		{"Atan2", row, two(op.Atan2)},
		{"Xlogy", []input{in(2, 3), in(3).within(0.2, 2)}, two(op.Xlogy)},
		{"AddN", []input{in(3), in(3), in(3)}, all(op.AddN)},
	})
}

func TestMatrixProducts(t *testing.T) {
	var cases []ruleCase
	for _, ta := range []bool{false, true} {
		for _, tb := range []bool{false, true} {
			a, b := []int64{2, 3}, []int64{3, 4}
			if ta {
				a = []int64{3, 2}
			}
			if tb {
				b = []int64{4, 3}
			}
			name := map[bool]string{false: "plain", true: "transposed"}
			cases = append(cases, ruleCase{"MatMul/" + name[ta] + "/" + name[tb], []input{in(a...), in(b...)},
				two(func(s *op.Scope, x, y op.Output) op.Output {
					return op.MatMul(s, x, y, op.MatMulTransposeA(ta), op.MatMulTransposeB(tb))
				})})
			cases = append(cases, ruleCase{"BatchMatMulV2/" + name[ta] + "/" + name[tb],
				[]input{in(append([]int64{2}, a...)...), in(append([]int64{3, 1}, b...)...)},
				two(func(s *op.Scope, x, y op.Output) op.Output {
					return op.BatchMatMulV2(s, x, y, op.BatchMatMulV2AdjX(ta), op.BatchMatMulV2AdjY(tb))
				})})
		}
	}
	cases = append(cases, ruleCase{"BatchMatMul", []input{in(2, 2, 3), in(2, 3, 2)}, two(func(s *op.Scope, x, y op.Output) op.Output {
		return op.BatchMatMul(s, x, y)
	})}, ruleCase{"MatMul/complex", []input{in(2, 2).of(tensor.Complex128), in(2, 2).of(tensor.Complex128)},
		two(func(s *op.Scope, x, y op.Output) op.Output { return op.MatMul(s, x, y, op.MatMulTransposeB(true)) })})
	checkRules(t, cases)
}

func TestReductions(t *testing.T) {
	axes := []int32{0, -1}
	checkRules(t, []ruleCase{
		{"Sum", []input{in(2, 3, 2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Sum(s, x, ints(s, axes...)) })},
		{"Sum/keep", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Sum(s, x, op.Const(s, int32(1)), op.SumKeepDims(true))
		})},
		{"Mean", []input{in(2, 3, 2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Mean(s, x, ints(s, axes...)) })},
		{"Max", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Max(s, x, ints(s, 1)) })},
		{"Min", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Min(s, x, ints(s, 0)) })},
		{"Cumsum", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Cumsum(s, x, op.Const(s, int32(1)), op.CumsumExclusive(true))
		})},
		{"Cumsum/reverse", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Cumsum(s, x, op.Const(s, int32(0)), op.CumsumReverse(true))
		})},
		{"SegmentSum", []input{in(4, 2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.SegmentSum(s, x, ints(s, 0, 0, 2, 2)) })},
	})
}
