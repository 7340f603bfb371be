package gradients_test

import (
	"fmt"
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func TestElementwise(t *testing.T) {
	c128 := tensor.Complex128
	checkRules(t, []ruleCase{
		{"Neg", []input{in(3)}, one(op.Neg)},
		{"Abs", []input{in(5)}, one(op.Abs)},
		{"Sign", []input{in(5)}, one(op.Sign)},
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
		{"Lgamma", []input{in(5).within(0.5, 4)}, one(op.Lgamma)},
		{"Digamma", []input{in(5).within(0.5, 4)}, one(op.Digamma)},
		{"Erfinv", []input{in(5).within(-0.8, 0.8)}, one(op.Erfinv)},
		{"Ndtri", []input{in(5).within(0.1, 0.9)}, one(op.Ndtri)},
		{"Dawsn", []input{in(5)}, one(op.Dawsn)},
		{"Expint", []input{in(5).within(0.2, 2)}, one(op.Expint)},
		{"FresnelCos", []input{in(5)}, one(op.FresnelCos)},
		{"FresnelSin", []input{in(5)}, one(op.FresnelSin)},
		{"Spence", []input{in(5).within(0.2, 2)}, one(op.Spence)},
		{"BesselI0", []input{in(5)}, one(op.BesselI0)},
		{"BesselI0e", []input{in(5)}, one(op.BesselI0e)},
		{"BesselI1", []input{in(5)}, one(op.BesselI1)},
		{"BesselI1e", []input{in(5)}, one(op.BesselI1e)},
		{"BesselK0", []input{in(5).within(0.3, 2)}, one(op.BesselK0)},
		{"BesselK0e", []input{in(5).within(0.3, 2)}, one(op.BesselK0e)},
		{"BesselK1", []input{in(5).within(0.3, 2)}, one(op.BesselK1)},
		{"BesselK1e", []input{in(5).within(0.3, 2)}, one(op.BesselK1e)},
		{"BesselJ0", []input{in(5)}, one(op.BesselJ0)},
		{"BesselJ1", []input{in(5)}, one(op.BesselJ1)},
		{"BesselY0", []input{in(5).within(0.3, 2)}, one(op.BesselY0)},
		{"BesselY1", []input{in(5).within(0.3, 2)}, one(op.BesselY1)},
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
		{"SquaredDifference/complex", []input{in(2, 3).of(tensor.Complex128), in(3).of(tensor.Complex128)}, two(func(s *op.Scope, x, y op.Output) op.Output {
			return op.Real(s, op.SquaredDifference(s, x, y), op.RealTout(tensor.Float64))
		})},
		{"MulNoNan/complex", []input{in(2, 3).of(tensor.Complex128), in(3).of(tensor.Complex128)}, two(op.MulNoNan)},
		{"Xlogy/complex", []input{in(3).of(tensor.Complex128), in(3).of(tensor.Complex128)}, two(op.Xlogy)},
		{"Xlog1py/complex", []input{in(3).of(tensor.Complex128), in(3).of(tensor.Complex128)}, two(op.Xlog1py)},
		{"Xdivy/complex", []input{in(3).of(tensor.Complex128), in(3).of(tensor.Complex128)}, two(op.Xdivy)},
		{"SquaredDifference", row, two(op.SquaredDifference)},
		{"Maximum", row, two(op.Maximum)},
		{"Minimum", row, two(op.Minimum)},
		{"Atan2", row, two(op.Atan2)},
		{"Xlogy", []input{in(2, 3), in(3).within(0.2, 2)}, two(op.Xlogy)},
		{"Xlog1py", []input{in(2, 3), in(3).within(0.2, 2)}, two(op.Xlog1py)},
		{"Xdivy", []input{in(2, 3), in(3).within(0.2, 2)}, two(op.Xdivy)},
		{"NextAfter", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.NextAfter(s, x, op.Const(s, 7.0)) })},
		{"Igamma", []input{in(3).within(0.5, 2), in(3).within(0.5, 2)}, two(op.Igamma)},
		{"Igammac", []input{in(3).within(0.5, 2), in(3).within(0.5, 2)}, two(op.Igammac)},
		{"Betainc", []input{in(3).within(0.1, 0.9)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Betainc(s, op.Const(s, []float64{2, 3, 0.5}), op.Const(s, []float64{1, 2, 0.7}), x)
		})},
		{"Zeta", []input{in(3).within(0.5, 2)}, one(func(s *op.Scope, q op.Output) op.Output {
			return op.Zeta(s, op.Const(s, []float64{2, 3, 4}), q)
		})},
		{"Polygamma", []input{in(3).within(0.5, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Polygamma(s, op.Const(s, []float64{1, 2, 3}), x)
		})},
		{"ClipByValue", []input{in(7).within(-2, 2), in().within(-1.1, -0.9), in().within(0.9, 1.1)}, all(func(s *op.Scope, x []op.Output) op.Output {
			return op.ClipByValue(s, x[0], x[1], x[2])
		})},
		{"AccumulateNV2", []input{in(3), in(3)}, all(func(s *op.Scope, x []op.Output) op.Output {
			return op.AccumulateNV2(s, x, tensor.MakePartial(3))
		})},
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
	})}, ruleCase{"BatchMatMulV3", []input{in(2, 2, 3), in(2, 3, 2)}, two(func(s *op.Scope, x, y op.Output) op.Output {
		return op.BatchMatMulV3(s, x, y, tensor.Float64)
	})}, ruleCase{"SparseMatMul", []input{in(3, 2).of(tensor.Float32), in(3, 4).of(tensor.Float32)}, two(func(s *op.Scope, x, y op.Output) op.Output {
		return op.SparseMatMul(s, x, y, op.SparseMatMulTransposeA(true))
	})}, ruleCase{"Cross", []input{in(2, 3), in(2, 3)}, two(op.Cross)}, ruleCase{"MatMul/complex", []input{in(2, 2).of(tensor.Complex128), in(2, 2).of(tensor.Complex128)},
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
		{"Prod", []input{in(2, 3, 2)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Prod(s, x, ints(s, axes...)) })},
		{"Prod/keep", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Prod(s, x, ints(s, 1), op.ProdKeepDims(true))
		})},
		{"Prod/zeros", []input{{dtype: tensor.Float64, shape: tensor.Shape{2, 3}, lo: 1, hi: 2, values: []float64{0, 3, 4, 0, 5, 0}}},
			one(func(s *op.Scope, x op.Output) op.Output { return op.Prod(s, x, ints(s, 1)) })},
		{"EuclideanNorm", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.EuclideanNorm(s, x, ints(s, 1)) })},
		{"Cumprod", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Cumprod(s, x, op.Const(s, int32(1)), op.CumprodExclusive(true))
		})},
		{"CumulativeLogsumexp", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.CumulativeLogsumexp(s, x, op.Const(s, int32(1)), op.CumulativeLogsumexpReverse(true))
		})},
		{"NthElement", []input{in(2, 4)}, one(func(s *op.Scope, x op.Output) op.Output { return op.NthElement(s, x, op.Const(s, int32(2))) })},
		{"Max", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Max(s, x, ints(s, 1)) })},
		{"Min", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.Min(s, x, ints(s, 0)) })},
		{"Cumsum", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Cumsum(s, x, op.Const(s, int32(1)), op.CumsumExclusive(true))
		})},
		{"Cumsum/reverse", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.Cumsum(s, x, op.Const(s, int32(0)), op.CumsumReverse(true))
		})},
	})
}

func TestSegments(t *testing.T) {
	type segment = func(s *op.Scope, data, ids op.Output) op.Output
	sorted := func(f segment) func(*op.Scope, []op.Output) []op.Output {
		return one(func(s *op.Scope, x op.Output) op.Output { return f(s, x, ints(s, 0, 0, 2, 2)) })
	}
	unsorted := func(f func(s *op.Scope, data, ids, n op.Output) op.Output) func(*op.Scope, []op.Output) []op.Output {
		return one(func(s *op.Scope, x op.Output) op.Output { return f(s, x, ints(s, 1, -1, 0, 1), op.Const(s, int32(2))) })
	}
	zeros := input{dtype: tensor.Float64, shape: tensor.Shape{4, 2}, lo: 1, hi: 2, values: []float64{0, 3, 4, 5, 0, 0, 0, 1}}
	cases := []ruleCase{
		{"SegmentSum", []input{in(4, 2)}, sorted(op.SegmentSum)},
		{"SegmentMean", []input{in(4, 2)}, sorted(op.SegmentMean)},
		{"SegmentMax", []input{in(4, 2)}, sorted(op.SegmentMax)},
		{"SegmentMin", []input{in(4, 2)}, sorted(op.SegmentMin)},
		{"SegmentProd/complex", []input{in(3, 2).of(tensor.Complex128)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.SegmentProd(s, x, ints(s, 0, 0, 1))
		})},
		{"UnsortedSegmentProd/complex", []input{in(3, 2).of(tensor.Complex128)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.UnsortedSegmentProd(s, x, ints(s, 1, 0, 1), op.Const(s, int32(2)))
		})},
		{"SegmentProd", []input{in(4, 2)}, sorted(op.SegmentProd)},
		{"SegmentProd/zeros", []input{zeros}, sorted(op.SegmentProd)},
		{"UnsortedSegmentSum", []input{in(4, 2)}, unsorted(op.UnsortedSegmentSum)},
		{"UnsortedSegmentMax", []input{in(4, 2)}, unsorted(op.UnsortedSegmentMax)},
		{"UnsortedSegmentMin", []input{in(4, 2)}, unsorted(op.UnsortedSegmentMin)},
		{"UnsortedSegmentProd", []input{in(4, 2)}, unsorted(op.UnsortedSegmentProd)},
		{"UnsortedSegmentProd/zeros", []input{zeros}, unsorted(op.UnsortedSegmentProd)},
	}
	for _, kind := range []string{"Sum", "Mean", "SqrtN"} {
		for _, sparse := range []bool{false, true} {
			add := func(s *op.Scope, name string, ins ...op.Output) op.Output {
				list := make([]op.Arg, len(ins))
				for i, o := range ins {
					list[i] = op.One(o)
				}
				return s.Add(name, list, opdef.Attrs{"sparse_gradient": sparse}).Out(0)
			}
			name := "SparseSegment" + kind
			cases = append(cases, ruleCase{name + "/" + fmt.Sprint(sparse), []input{in(4, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
				return add(s, name, x, ints(s, 3, 0, 3, 1), ints(s, 0, 0, 1, 3))
			})}, ruleCase{name + "WithNumSegments/" + fmt.Sprint(sparse), []input{in(4, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
				return add(s, name+"WithNumSegments", x, ints(s, 3, 0, 3, 1), ints(s, 0, 0, 1, 3), op.Const(s, int32(6)))
			})})
		}
	}
	checkRules(t, cases)
}

func TestComplexParts(t *testing.T) {
	z := in(4).of(tensor.Complex128)
	checkRules(t, []ruleCase{
		{"Complex", []input{in(2, 3), in(3)}, two(func(s *op.Scope, x, y op.Output) op.Output {
			return op.Complex(s, x, y, op.ComplexTout(tensor.Complex128))
		})},
		{"Real", []input{z}, one(func(s *op.Scope, z op.Output) op.Output { return op.Real(s, z, op.RealTout(tensor.Float64)) })},
		{"Imag", []input{z}, one(func(s *op.Scope, z op.Output) op.Output { return op.Imag(s, z, op.ImagTout(tensor.Float64)) })},
		{"Conj", []input{z}, one(op.Conj)},
		{"Angle", []input{z}, one(func(s *op.Scope, z op.Output) op.Output { return op.Angle(s, z, op.AngleTout(tensor.Float64)) })},
		{"ComplexAbs", []input{z}, one(func(s *op.Scope, z op.Output) op.Output {
			return op.ComplexAbs(s, z, op.ComplexAbsTout(tensor.Float64))
		})},
		{"Reciprocal", []input{z}, one(op.Reciprocal)},
		{"Sqrt", []input{z}, one(op.Sqrt)},
		{"Rsqrt", []input{z}, one(op.Rsqrt)},
		{"Sigmoid", []input{z}, one(op.Sigmoid)},
		{"Real/float32", []input{in(3).of(tensor.Complex64)}, one(func(s *op.Scope, z op.Output) op.Output { return op.Real(s, z) })},
	})
}

// TestGradientsOfGradients differentiates the operations that rules add.
func TestGradientsOfGradients(t *testing.T) {
	two := func(name string) func(*op.Scope, []op.Output) []op.Output {
		return func(s *op.Scope, x []op.Output) []op.Output {
			return []op.Output{s.Add(name, []op.Arg{op.One(x[0]), op.One(x[1])}, nil).Out(0)}
		}
	}
	pair, positive := []input{in(5), in(5)}, []input{in(5).within(0.3, 2), in(5)}
	complexPair := []input{in(5).of(tensor.Complex128), in(5).of(tensor.Complex128)}
	checkRules(t, []ruleCase{
		{"ReciprocalGrad", pair, two("ReciprocalGrad")},
		{"InvGrad", pair, two("InvGrad")},
		{"SqrtGrad", positive, two("SqrtGrad")},
		{"RsqrtGrad", positive, two("RsqrtGrad")},
		{"TanhGrad", pair, two("TanhGrad")},
		{"SigmoidGrad", pair, two("SigmoidGrad")},
		{"ReciprocalGrad/complex", complexPair, two("ReciprocalGrad")},
		{"SqrtGrad/complex", complexPair, two("SqrtGrad")},
		{"RsqrtGrad/complex", complexPair, two("RsqrtGrad")},
		{"TanhGrad/complex", complexPair, two("TanhGrad")},
		{"SigmoidGrad/complex", complexPair, two("SigmoidGrad")},
		{"ReluGrad", pair, two("ReluGrad")},
		{"Relu6Grad", pair, two("Relu6Grad")},
		{"LeakyReluGrad", pair, two("LeakyReluGrad")},
		{"EluGrad", pair, two("EluGrad")},
		{"SeluGrad", pair, two("SeluGrad")},
		{"SoftplusGrad", pair, two("SoftplusGrad")},
		{"BiasAddGrad", []input{in(2, 3)}, one(func(s *op.Scope, x op.Output) op.Output { return op.BiasAddGrad(s, x) })},
		{"BiasAddGrad/NCHW", []input{in(2, 3, 2, 2)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.BiasAddGrad(s, x, op.BiasAddGradDataFormat("NCHW"))
		})},
	})
}
