package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// general returns a matrix of full rank with distinct singular values.
func general(s *scope, x op.Output) op.Output { return op.AddV2(s, x, op.Square(s, x)) }

// size returns the absolute values of complex numbers, which do not depend on the phase.
func size(s *scope, x op.Output) op.Output {
	return op.ComplexAbs(s, x, op.ComplexAbsTout(tensor.Float64))
}

// columns returns some columns of a matrix, beginning with the given one.
func columns(s *scope, x op.Output, from, count int32) op.Output {
	return op.Slice(s, x, ints(s, 0, from), ints(s, -1, count))
}

// outer returns a·bᴴ.
func outer(s *scope, a, b op.Output) op.Output {
	return op.BatchMatMulV2(s, a, b, op.BatchMatMulV2AdjY(true))
}

func TestDecompositions(t *testing.T) {
	c128 := tensor.Complex128
	eig := func(s *scope, x []op.Output) outs {
		e, v := op.Eig(s, x[0], c128)
		return outs{e, size(s, v)}
	}
	checkRules(t, []ruleCase{
		{"Eig", []input{in(2, 3, 3)}, eig},
		{"Eig/complex", []input{in(3, 3).of(c128)}, eig},
		{"Eig/values only", []input{in(3, 3)}, func(s *scope, x []op.Output) outs {
			e, _ := op.Eig(s, x[0], c128, op.EigComputeV(false))
			return outs{e}
		}},
		{"SelfAdjointEigV2/complex", []input{in(3, 3).of(c128)}, func(s *scope, x []op.Output) outs {
			e, v := op.SelfAdjointEigV2(s, outer(s, x[0], x[0]))
			return outs{op.Real(s, e, op.RealTout(tensor.Float64)), size(s, v)}
		}},
	})
}

func TestSingularValues(t *testing.T) {
	c128 := tensor.Complex128
	// the signs of the vectors are arbitrary
	squares := func(opts ...op.SvdAttr) func(s *scope, x []op.Output) outs {
		return func(s *scope, x []op.Output) outs {
			values, u, v := op.Svd(s, general(s, x[0]), opts...)
			return outs{values, op.Square(s, u), op.Square(s, v)}
		}
	}
	turned := func(opts ...op.SvdAttr) func(s *scope, x []op.Output) outs {
		return func(s *scope, x []op.Output) outs {
			values, u, v := op.Svd(s, general(s, x[0]), opts...)
			return outs{values, outer(s, columns(s, u, 0, 1), columns(s, v, 0, 1)), size(s, v)}
		}
	}
	checkRules(t, []ruleCase{
		{"Svd", []input{in(2, 4, 3)}, squares()},
		{"Svd/wide", []input{in(2, 3)}, squares()},
		{"Svd/full", []input{in(2, 4, 3)}, squares(op.SvdFullMatrices(true))},
		{"Svd/full wide", []input{in(2, 3, 4)}, squares(op.SvdFullMatrices(true))},
		{"Svd/full square", []input{in(3, 3)}, squares(op.SvdFullMatrices(true))},
		{"Svd/complex", []input{in(4, 3).of(c128)}, turned()},
		{"Svd/complex wide", []input{in(3, 4).of(c128)}, turned()},
		{"Svd/complex full", []input{in(4, 3).of(c128)}, turned(op.SvdFullMatrices(true))},
		{"Svd/several more vectors", []input{in(4, 2)}, func(s *scope, x []op.Output) outs {
			_, u, _ := op.Svd(s, general(s, x[0]), op.SvdFullMatrices(true))
			more := columns(s, u, 2, 2)
			return outs{outer(s, more, more)} // the plane that they span
		}},
		{"Svd/values only", []input{in(3, 2)}, func(s *scope, x []op.Output) outs {
			values, _, _ := op.Svd(s, x[0], op.SvdComputeUv(false))
			return outs{values}
		}},
		{"Svd/complex values only", []input{in(2, 3, 2).of(c128)}, func(s *scope, x []op.Output) outs {
			values, _, _ := op.Svd(s, general(s, x[0]), op.SvdComputeUv(false))
			return outs{values}
		}},
	})
}

func TestQr(t *testing.T) {
	c128 := tensor.Complex128
	qr := func(opts ...op.QrAttr) func(s *scope, x []op.Output) outs {
		return func(s *scope, x []op.Output) outs {
			q, r := op.Qr(s, general(s, x[0]), opts...)
			return outs{q, r}
		}
	}
	checkRules(t, []ruleCase{
		{"Qr", []input{in(2, 4, 3)}, qr()},
		{"Qr/square", []input{in(4, 4)}, qr()},
		{"Qr/wide", []input{in(2, 2, 4)}, qr()},
		{"Qr/full", []input{in(2, 4, 3)}, qr(op.QrFullMatrices(true))},
		{"Qr/full wide", []input{in(2, 4)}, qr(op.QrFullMatrices(true))},
		{"Qr/complex", []input{in(2, 4, 3).of(c128)}, qr()},
		{"Qr/complex wide", []input{in(2, 2, 3).of(c128)}, qr()},
		{"Qr/several more vectors", []input{in(4, 2)}, func(s *scope, x []op.Output) outs {
			q, _ := op.Qr(s, general(s, x[0]), op.QrFullMatrices(true))
			more := columns(s, q, 2, 2)
			return outs{outer(s, more, more)}
		}},
	})
}
