package gradients_test

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func TestActivations(t *testing.T) {
	checkRules(t, []ruleCase{
		{"Relu", []input{in(6)}, one(op.Relu)},
		{"Relu6", []input{in(6).within(-2, 9)}, one(op.Relu6)},
		{"Elu", []input{in(6)}, one(op.Elu)},
		{"Selu", []input{in(6)}, one(op.Selu)},
		{"LeakyRelu", []input{in(6)}, one(func(s *op.Scope, x op.Output) op.Output { return op.LeakyRelu(s, x, op.LeakyReluAlpha(0.3)) })},
		{"Softplus", []input{in(6)}, one(op.Softplus)},
		{"Softsign", []input{in(6)}, one(op.Softsign)},
		{"BiasAdd", []input{in(2, 3), in(3)}, two(func(s *op.Scope, x, b op.Output) op.Output { return op.BiasAdd(s, x, b) })},
		{"BiasAddV1", []input{in(2, 3), in(3)}, two(op.BiasAddV1)},
		{"BiasAdd/NCHW", []input{in(2, 3, 2, 2), in(3)}, two(func(s *op.Scope, x, b op.Output) op.Output {
			return op.BiasAdd(s, x, b, op.BiasAddDataFormat("NCHW"))
		})},
	})
}

func TestLosses(t *testing.T) {
	checkRules(t, []ruleCase{
		{"Softmax", []input{in(2, 4)}, one(op.Softmax)},
		{"LogSoftmax", []input{in(2, 4)}, one(op.LogSoftmax)},
		{"SoftmaxCrossEntropyWithLogits", []input{in(2, 4), in(2, 4)}, two(func(s *op.Scope, x, y op.Output) op.Output {
			// labels that add up to one
			loss, _ := op.SoftmaxCrossEntropyWithLogits(s, x, op.Softmax(s, y))
			return loss
		})},
		{"SparseSoftmaxCrossEntropyWithLogits", []input{in(2, 4)}, one(func(s *op.Scope, x op.Output) op.Output {
			loss, _ := op.SparseSoftmaxCrossEntropyWithLogits(s, x, ints(s, 3, 1))
			return loss
		})},
		{"L2Loss", []input{in(2, 3)}, one(op.L2Loss)},
	})
}

func TestConvolutions(t *testing.T) {
	image, filter := in(2, 5, 6, 2), in(3, 2, 2, 3)
	strides := []int64{1, 2, 1, 1}
	checkRules(t, []ruleCase{
		{"Conv2D", []input{image, filter}, two(func(s *op.Scope, x, f op.Output) op.Output { return op.Conv2D(s, x, f, strides, "SAME") })},
		{"Conv2D/dilated", []input{image, filter}, two(func(s *op.Scope, x, f op.Output) op.Output {
			return op.Conv2D(s, x, f, []int64{1, 1, 1, 1}, "VALID", op.Conv2DDilations([]int64{1, 2, 1, 1}))
		})},
		{"Conv2DBackpropInput", []input{filter, in(2, 3, 6, 3)}, two(func(s *op.Scope, f, dy op.Output) op.Output {
			return op.Conv2DBackpropInput(s, ints(s, 2, 5, 6, 2), f, dy, strides, "SAME")
		})},
		{"Conv2DBackpropFilter", []input{image, in(2, 3, 6, 3)}, two(func(s *op.Scope, x, dy op.Output) op.Output {
			return op.Conv2DBackpropFilter(s, x, ints(s, 3, 2, 2, 3), dy, strides, "SAME")
		})},
		{"Conv3D", []input{in(1, 3, 4, 3, 2), in(2, 2, 2, 2, 2)}, two(func(s *op.Scope, x, f op.Output) op.Output {
			return op.Conv3D(s, x, f, []int64{1, 1, 2, 1, 1}, "SAME")
		})},
		{"Conv3DBackpropInputV2", []input{in(2, 2, 2, 2, 2), in(1, 3, 2, 3, 2)}, two(func(s *op.Scope, f, dy op.Output) op.Output {
			return op.Conv3DBackpropInputV2(s, ints(s, 1, 3, 4, 3, 2), f, dy, []int64{1, 1, 2, 1, 1}, "SAME")
		})},
		{"Conv3DBackpropFilterV2", []input{in(1, 3, 4, 3, 2), in(1, 3, 2, 3, 2)}, two(func(s *op.Scope, x, dy op.Output) op.Output {
			return op.Conv3DBackpropFilterV2(s, x, ints(s, 2, 2, 2, 2, 2), dy, []int64{1, 1, 2, 1, 1}, "SAME")
		})},
		{"DepthwiseConv2dNative", []input{image, in(3, 2, 2, 2)}, two(func(s *op.Scope, x, f op.Output) op.Output {
			return op.DepthwiseConv2dNative(s, x, f, []int64{1, 1, 1, 1}, "VALID")
		})},
		{"DepthwiseConv2dNativeBackpropInput", []input{in(3, 2, 2, 2), in(2, 3, 5, 4)}, two(func(s *op.Scope, f, dy op.Output) op.Output {
			return op.DepthwiseConv2dNativeBackpropInput(s, ints(s, 2, 5, 6, 2), f, dy, []int64{1, 1, 1, 1}, "VALID")
		})},
		{"DepthwiseConv2dNativeBackpropFilter", []input{image, in(2, 3, 5, 4)}, two(func(s *op.Scope, x, dy op.Output) op.Output {
			return op.DepthwiseConv2dNativeBackpropFilter(s, x, ints(s, 3, 2, 2, 2), dy, []int64{1, 1, 1, 1}, "VALID")
		})},
		{"Dilation2D", []input{in(1, 4, 4, 2), in(2, 2, 2)}, two(func(s *op.Scope, x, f op.Output) op.Output {
			return op.Dilation2D(s, x, f, []int64{1, 1, 1, 1}, []int64{1, 1, 1, 1}, "SAME")
		})},
	})
}

func TestPools(t *testing.T) {
	image, volume := in(2, 5, 6, 2), in(1, 3, 4, 4, 2).of(tensor.Float32)
	ksize, strides := []int64{1, 2, 2, 1}, []int64{1, 2, 1, 1}
	ksize3, strides3 := []int64{1, 2, 2, 2, 1}, []int64{1, 1, 2, 2, 1}
	maxima := func(x op.Output, s *op.Scope) op.Output { return op.MaxPool(s, x, ksize, strides, "SAME") }
	maxima3 := func(x op.Output, s *op.Scope) op.Output { return op.MaxPool3D(s, x, ksize3, strides3, "SAME") }
	checkRules(t, []ruleCase{
		{"MaxPool", []input{image}, one(func(s *op.Scope, x op.Output) op.Output { return maxima(x, s) })},
		{"MaxPoolV2", []input{image}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.MaxPoolV2(s, x, ints(s, 1, 2, 2, 1), ints(s, 1, 2, 1, 1), "SAME")
		})},
		{"MaxPool3D", []input{volume}, one(func(s *op.Scope, x op.Output) op.Output { return maxima3(x, s) })},
		{"MaxPoolWithArgmax", []input{image}, one(func(s *op.Scope, x op.Output) op.Output {
			values, _ := op.MaxPoolWithArgmax(s, x, ksize, strides, "SAME")
			return values
		})},
		{"MaxPoolGrad", []input{in(2, 3, 6, 2)}, one(func(s *op.Scope, dy op.Output) op.Output {
			x := op.Const(s, image.tensor(t, 7))
			return op.MaxPoolGrad(s, x, maxima(x, s), dy, ksize, strides, "SAME")
		})},
		{"MaxPoolGradGrad", []input{image}, one(func(s *op.Scope, d op.Output) op.Output {
			x := op.Const(s, image.tensor(t, 7))
			return op.MaxPoolGradGrad(s, x, maxima(x, s), d, ksize, strides, "SAME")
		})},
		{"MaxPoolGradV2", []input{in(2, 3, 6, 2)}, one(func(s *op.Scope, dy op.Output) op.Output {
			x := op.Const(s, image.tensor(t, 7))
			return op.MaxPoolGradV2(s, x, maxima(x, s), dy, ints(s, 1, 2, 2, 1), ints(s, 1, 2, 1, 1), "SAME")
		})},
		{"MaxPoolGradGradV2", []input{image}, one(func(s *op.Scope, d op.Output) op.Output {
			x := op.Const(s, image.tensor(t, 7))
			return op.MaxPoolGradGradV2(s, x, maxima(x, s), d, ints(s, 1, 2, 2, 1), ints(s, 1, 2, 1, 1), "SAME")
		})},
		{"MaxPool3DGrad", []input{in(1, 3, 2, 2, 2).of(tensor.Float32)}, one(func(s *op.Scope, dy op.Output) op.Output {
			x := op.Const(s, volume.tensor(t, 7))
			return op.MaxPool3DGrad(s, x, maxima3(x, s), dy, ksize3, strides3, "SAME")
		})},
		{"MaxPool3DGradGrad", []input{volume}, one(func(s *op.Scope, d op.Output) op.Output {
			x := op.Const(s, volume.tensor(t, 7))
			return op.MaxPool3DGradGrad(s, x, maxima3(x, s), d, ksize3, strides3, "SAME")
		})},
		{"AvgPool", []input{image}, one(func(s *op.Scope, x op.Output) op.Output { return op.AvgPool(s, x, ksize, strides, "VALID") })},
		{"AvgPoolGrad", []input{in(2, 3, 6, 2)}, one(func(s *op.Scope, dy op.Output) op.Output {
			return op.AvgPoolGrad(s, ints(s, 2, 5, 6, 2), dy, ksize, strides, "SAME")
		})},
		{"AvgPool3D", []input{volume}, one(func(s *op.Scope, x op.Output) op.Output { return op.AvgPool3D(s, x, ksize3, strides3, "SAME") })},
		{"AvgPool3DGrad", []input{in(1, 3, 2, 2, 2)}, one(func(s *op.Scope, dy op.Output) op.Output {
			return op.AvgPool3DGrad(s, ints(s, 1, 3, 4, 4, 2), dy, ksize3, strides3, "SAME")
		})},
		{"FractionalAvgPool", []input{image}, one(func(s *op.Scope, x op.Output) op.Output {
			y, _, _ := op.FractionalAvgPool(s, x, []float32{1, 1.4, 1.6, 1}, op.FractionalAvgPoolSeed(1), op.FractionalAvgPoolSeed2(2),
				op.FractionalAvgPoolDeterministic(true), op.FractionalAvgPoolOverlapping(true))
			return y
		})},
		{"FractionalMaxPool", []input{image}, one(func(s *op.Scope, x op.Output) op.Output {
			y, _, _ := op.FractionalMaxPool(s, x, []float32{1, 1.4, 1.6, 1}, op.FractionalMaxPoolSeed(1), op.FractionalMaxPoolSeed2(2),
				op.FractionalMaxPoolDeterministic(true))
			return y
		})},
	})
}

func TestNormalizations(t *testing.T) {
	f32 := func(dims ...int64) input { return in(dims...).of(tensor.Float32) }
	positive := f32(3).within(0.5, 2)
	fused := func(name string, training bool, format string) func(*op.Scope, []op.Output) []op.Output {
		return func(s *op.Scope, x []op.Output) []op.Output {
			ins := append(slices.Clip(x), op.Const(s, []float32{0.1, 0.2, 0.3}), op.Const(s, []float32{1, 2, 0.5}))
			if training {
				ins = append(slices.Clip(x), op.Const(s, []float32{}), op.Const(s, []float32{}))
			}
			list := make([]op.Arg, len(ins))
			for i, o := range ins {
				list[i] = op.One(o)
			}
			return []op.Output{s.Add(name, list, opdef.Attrs{"is_training": training, "data_format": format}).Out(0)}
		}
	}
	checkRules(t, []ruleCase{
		{"LRN", []input{f32(1, 2, 2, 8)}, one(func(s *op.Scope, x op.Output) op.Output {
			return op.LRN(s, x, op.LRNDepthRadius(2), op.LRNAlpha(0.5))
		})},
		{"IsotonicRegression", []input{in(2, 5)}, one(func(s *op.Scope, x op.Output) op.Output {
			y, _ := op.IsotonicRegression(s, x, op.IsotonicRegressionOutputDtype(tensor.Float64))
			return y
		})},
		{"BatchNormWithGlobalNormalization", []input{f32(2, 2, 2, 3), f32(3), positive, f32(3), positive}, all(func(s *op.Scope, x []op.Output) op.Output {
			return op.BatchNormWithGlobalNormalization(s, x[0], x[1], x[2], x[3], x[4], 0.01, true)
		})},
		{"FusedBatchNorm", []input{f32(2, 3, 2, 3), positive, f32(3)}, fused("FusedBatchNorm", true, "NHWC")},
		{"FusedBatchNormV2", []input{f32(2, 3, 2, 3), positive, f32(3)}, fused("FusedBatchNormV2", false, "NHWC")},
		{"FusedBatchNormV3", []input{f32(2, 3, 2, 2), positive, f32(3)}, fused("FusedBatchNormV3", true, "NCHW")},
		{"FusedBatchNormV3/inference", []input{f32(2, 3, 2, 2), positive, f32(3)}, fused("FusedBatchNormV3", false, "NCHW")},
	})
}

// TestFusedBatchNormTwice differentiates the sum of squares of a normalization's gradient by the
// input.
func TestFusedBatchNormTwice(t *testing.T) {
	for _, training := range []bool{true, false} {
		for _, version := range []string{"", "V2", "V3"} {
			name := "FusedBatchNormGrad" + version
			markChecked(name)
			c := ruleCase{name, []input{in(2, 3, 2, 3).of(tensor.Float32), in(3).of(tensor.Float32).within(0.5, 2)},
				func(s *op.Scope, x []op.Output) []op.Output {
					moments := []op.Output{op.Const(s, []float32{0.1, 0.2, 0.3}), op.Const(s, []float32{1, 2, 0.5})}
					if training {
						moments = []op.Output{op.Const(s, []float32{}), op.Const(s, []float32{})}
					}
					forward := s.Add("FusedBatchNorm"+version, []op.Arg{op.One(x[0]), op.One(x[1]), op.One(op.Const(s, []float32{0, 0, 0})),
						op.One(moments[0]), op.One(moments[1])}, opdef.Attrs{"is_training": training})
					y := op.Square(s, forward.Out(0))
					return []op.Output{gradients.Compute(s, []op.Output{y}, []op.Output{x[0]})[0].Dense}
				}}
			if diff, _ := checkRule(t, c); !(diff < 3e-2) {
				t.Errorf("%s, training %v: gradients and differences are %g apart", name, training, diff)
			}
		}
	}
}

// TestCrossEntropyTwice differentiates the gradient of a loss.
func TestCrossEntropyTwice(t *testing.T) {
	checkRules(t, []ruleCase{
		{"SoftmaxCrossEntropyWithLogits/twice", []input{in(2, 4)}, one(func(s *op.Scope, x op.Output) op.Output {
			loss, _ := op.SoftmaxCrossEntropyWithLogits(s, x, op.Const(s, [][]float64{{1, 0, 0, 0}, {0.5, 0.5, 0, 0}}))
			return gradients.Compute(s, []op.Output{op.Square(s, loss)}, []op.Output{x})[0].Dense
		})},
		{"SparseSoftmaxCrossEntropyWithLogits/twice", []input{in(2, 4)}, one(func(s *op.Scope, x op.Output) op.Output {
			loss, _ := op.SparseSoftmaxCrossEntropyWithLogits(s, x, ints(s, 3, 1))
			return gradients.Compute(s, []op.Output{op.Square(s, loss)}, []op.Output{x})[0].Dense
		})},
	})
}
