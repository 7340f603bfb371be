package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

func TestRealTransforms(t *testing.T) {
	c128, f64 := tensor.Complex128, tensor.Float64
	checkRules(t, []ruleCase{
		{"RFFT", []input{in(2, 4)}, one(func(s *scope, x op.Output) op.Output { return op.RFFT(s, x, ints(s, 4), op.RFFTTcomplex(c128)) })},
		{"RFFT/odd", []input{in(2, 5)}, one(func(s *scope, x op.Output) op.Output { return op.RFFT(s, x, ints(s, 5), op.RFFTTcomplex(c128)) })},
		{"RFFT/cropped", []input{in(2, 6)}, one(func(s *scope, x op.Output) op.Output { return op.RFFT(s, x, ints(s, 4), op.RFFTTcomplex(c128)) })},
		{"RFFT/float", []input{in(6).of(tensor.Float32)}, one(func(s *scope, x op.Output) op.Output { return op.RFFT(s, x, ints(s, 6)) })},
		{"RFFT2D", []input{in(2, 3, 5)}, one(func(s *scope, x op.Output) op.Output {
			return op.RFFT2D(s, x, ints(s, 3, 5), op.RFFT2DTcomplex(c128))
		})},
		{"RFFT3D", []input{in(3, 3, 4)}, one(func(s *scope, x op.Output) op.Output {
			return op.RFFT3D(s, x, ints(s, 2, 2, 4), op.RFFT3DTcomplex(c128))
		})},
		{"IRFFT", []input{in(2, 3).of(c128)}, one(func(s *scope, x op.Output) op.Output { return op.IRFFT(s, x, ints(s, 4), op.IRFFTTreal(f64)) })},
		{"IRFFT/odd", []input{in(2, 3).of(c128)}, one(func(s *scope, x op.Output) op.Output { return op.IRFFT(s, x, ints(s, 5), op.IRFFTTreal(f64)) })},
		{"IRFFT/cropped", []input{in(2, 5).of(c128)}, one(func(s *scope, x op.Output) op.Output { return op.IRFFT(s, x, ints(s, 4), op.IRFFTTreal(f64)) })},
		{"IRFFT/one", []input{in(2, 1).of(c128)}, one(func(s *scope, x op.Output) op.Output { return op.IRFFT(s, x, ints(s, 1), op.IRFFTTreal(f64)) })},
		{"IRFFT2D", []input{in(2, 3, 4).of(c128)}, one(func(s *scope, x op.Output) op.Output {
			return op.IRFFT2D(s, x, ints(s, 3, 5), op.IRFFT2DTreal(f64))
		})},
		{"IRFFT3D", []input{in(2, 3, 4).of(c128)}, one(func(s *scope, x op.Output) op.Output {
			return op.IRFFT3D(s, x, ints(s, 2, 3, 6), op.IRFFT3DTreal(f64))
		})},
	})
}
