package gradients_test

import (
	"reflect"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestStraightThrough checks the gradients of rounding operations. They are TensorFlow's and differ
// from finite differences.
func TestStraightThrough(t *testing.T) {
	x := []float32{-2, -0.5, 0.3, 2}
	limits := func(s *scope) (lo, hi op.Output) { return op.Const(s, float32(-1)), op.Const(s, float32(1)) }
	all, inside := []float32{1, 1, 1, 1}, []float32{0, 1, 1, 0}
	for _, tt := range []struct {
		name  string
		build func(s *scope, x op.Output) op.Output
		want  []float32
	}{
		{"FakeQuantWithMinMaxArgs", func(s *scope, x op.Output) op.Output {
			return op.FakeQuantWithMinMaxArgs(s, x, op.FakeQuantWithMinMaxArgsMin(-1), op.FakeQuantWithMinMaxArgsMax(1))
		}, inside},
		{"FakeQuantWithMinMaxVars", func(s *scope, x op.Output) op.Output {
			lo, hi := limits(s)
			return op.FakeQuantWithMinMaxVars(s, x, lo, hi)
		}, inside},
		{"FakeQuantWithMinMaxVarsPerChannel", func(s *scope, x op.Output) op.Output {
			return op.FakeQuantWithMinMaxVarsPerChannel(s, x, op.Const(s, []float32{-1, -1, -1, -1}), op.Const(s, []float32{1, 1, 1, 1}))
		}, inside},
		{"QuantizeAndDequantize", func(s *scope, x op.Output) op.Output { return op.QuantizeAndDequantize(s, x) }, all},
		{"QuantizeAndDequantizeV2", func(s *scope, x op.Output) op.Output {
			lo, hi := limits(s)
			return op.QuantizeAndDequantizeV2(s, x, lo, hi, op.QuantizeAndDequantizeV2RangeGiven(true))
		}, all},
		{"QuantizeAndDequantizeV3", func(s *scope, x op.Output) op.Output {
			lo, hi := limits(s)
			return op.QuantizeAndDequantizeV3(s, x, lo, hi, op.Const(s, int32(8)))
		}, all},
		{"QuantizeAndDequantizeV4", func(s *scope, x op.Output) op.Output {
			lo, hi := limits(s)
			return op.QuantizeAndDequantizeV4(s, x, lo, hi, op.QuantizeAndDequantizeV4RangeGiven(true))
		}, inside},
		{"Print", func(s *scope, x op.Output) op.Output { return op.Print(s, x, nil, op.PrintFirstN(0)) }, all},
	} {
		markChecked(tt.name)
		s := op.NewScope()
		in := op.Const(s, x)
		dx := gradients.Compute(s, outs{tt.build(s, in)}, outs{in})[0].Dense
		g, err := s.Finalize()
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		g.Versions.Producer = 1 // newer graphs must not have deprecated operations
		sess, err := weft.NewSession("local", g)
		if err != nil {
			t.Fatal(err)
		}
		defer sess.Close()
		out, err := sess.Run(t.Context(), nil, outs{dx}, nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := out[0].Go(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestEinsum(t *testing.T) {
	sum := func(equation string) func(s *scope, x []op.Output) []op.Output {
		return func(s *scope, x []op.Output) []op.Output { return outs{op.Einsum(s, x, equation)} }
	}
	checkRules(t, []ruleCase{
		{"Einsum/matrices", []input{in(2, 3), in(3, 4)}, sum("ij,jk->ik")},
		{"Einsum/batches", []input{in(2, 2, 3), in(3, 2)}, sum("...ij,jk->...ik")},
		{"Einsum/broadcast", []input{in(2, 1, 2, 3), in(3, 3, 2)}, sum("...ij,...jk->...ki")},
		{"Einsum/sums", []input{in(2, 3), in(4)}, sum("ij,k->i")},
		{"Einsum/transpose", []input{in(2, 3)}, sum("ij->ji")},
		{"Einsum/one operand summed", []input{in(2, 3, 2)}, sum("ijk->j")},
		{"Einsum/diagonal", []input{in(3, 3)}, sum("ii->i")},
		{"Einsum/trace", []input{in(2, 3, 3)}, sum("...ii->...")},
		{"Einsum/onto the diagonal", []input{in(3)}, sum("i->ii")},
		{"Einsum/repeated on both sides", []input{in(3, 2, 3)}, sum("iji->jii")},
		{"Einsum/traces of factors", []input{in(2, 3, 3), in(3, 4, 4, 2)}, sum("jii,ikkl->lj")},
		{"Einsum/traces and batches", []input{in(2, 2, 3, 3), in(3, 4, 4)}, sum("...jii,ikk->...jk")},
		{"Einsum/trace of the factor without batches", []input{in(2, 2, 3), in(3, 4, 4, 2)}, sum("...ij,jkkl->...ik")},
		{"Einsum/complex", []input{in(2, 2).of(tensor.Complex128), in(2, 2).of(tensor.Complex128)}, sum("ij,jk->ik")},
	})
}

func TestTransforms(t *testing.T) {
	z := in(2, 3, 2).of(tensor.Complex128)
	checkRules(t, []ruleCase{
		{"FFT", []input{z}, one(func(s *scope, x op.Output) op.Output { return op.FFT(s, x) })},
		{"FFT2D", []input{z}, one(func(s *scope, x op.Output) op.Output { return op.FFT2D(s, x) })},
		{"FFT3D", []input{z}, one(func(s *scope, x op.Output) op.Output { return op.FFT3D(s, x) })},
		{"IFFT", []input{z}, one(func(s *scope, x op.Output) op.Output { return op.IFFT(s, x) })},
		{"IFFT2D", []input{z}, one(func(s *scope, x op.Output) op.Output { return op.IFFT2D(s, x) })},
		{"IFFT3D", []input{z}, one(func(s *scope, x op.Output) op.Output { return op.IFFT3D(s, x) })},
		{"CTCLoss", []input{in(4, 1, 3).of(tensor.Float32)}, one(func(s *scope, x op.Output) op.Output {
			loss, _ := op.CTCLoss(s, x, op.Const(s, [][]int64{{0, 0}, {0, 1}}), ints(s, 0, 1), ints(s, 4))
			return loss
		})},
	})
}
