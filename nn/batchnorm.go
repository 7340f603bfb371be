package nn

import (
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// BatchNormalization scales each channel, the last dimension, to mean 0 and variance 1 over the
// batch (Ioffe and Szegedy, 2015). In training it uses the statistics of the batch and updates
// their moving averages, which it uses otherwise.
type BatchNormalization struct {
	Momentum float64 // of the moving averages; 0.99 if 0
	Epsilon  float64 // added to the variance; 1e-3 if 0
	NoCenter bool    // no variable "beta" is added
	NoScale  bool    // no variable "gamma" is multiplied
}

// Apply implements [Layer].
func (l *BatchNormalization) Apply(c *Context, x op.Output) op.Output {
	c = c.Layer(l, "batch_normalization")
	s, channels := c.Scope, c.size(x, -1, -1)
	if channels == 0 {
		return op.Output{}
	}
	shape := tensor.Shape{channels}
	gamma, beta := op.Output{}, op.Output{}
	if !l.NoScale {
		gamma = c.Variable(Weight{Name: "gamma", Shape: shape, Init: train.Ones}).Value
	}
	if !l.NoCenter {
		beta = c.Variable(Weight{Name: "beta", Shape: shape, Init: train.Zeros}).Value
	}
	average := c.Variable(Weight{Name: "moving_mean", Shape: shape, Init: train.Zeros, Frozen: true})
	variance := c.Variable(Weight{Name: "moving_variance", Shape: shape, Init: train.Ones, Frozen: true})

	rank := s.ShapeOf(x).Rank()
	axes := append([]int{0}, between(rank-2)...)
	var y, batchMean, batchVariance op.Output
	if rank == 4 {
		y, batchMean, batchVariance = l.fused(c, x, gamma, beta, average.Value, variance.Value)
	} else {
		wide := widen(s, x)
		batchMean, batchVariance = average.Value, variance.Value
		if c.Training {
			batchMean, batchVariance = moments(s, wide, false, axes...)
		}
		y = castLike(s, normalize(s, wide, batchMean, batchVariance, gamma, beta, orDefault(l.Epsilon, 1e-3)), x)
	}
	if c.Training {
		l.follow(c, average, batchMean)
		l.follow(c, variance, batchVariance)
	}
	return c.done(x, y, true)
}

// fused uses the operation for images. The variance that it returns is that of a sample, and that
// of the moving average is that of the batch.
func (l *BatchNormalization) fused(c *Context, x, gamma, beta, average, variance op.Output) (y, batchMean, batchVariance op.Output) {
	s := c.Scope
	if gamma.Node == nil {
		gamma = op.OnesLike(s, average)
	}
	if beta.Node == nil {
		beta = op.ZerosLike(s, average)
	}
	if c.Training {
		none, err := tensor.FromSlice(tensor.Shape{0}, []float32{})
		if err != nil {
			s.Fail(err)
		}
		average, variance = op.Const(s, none), op.Const(s, none)
	}
	y, batchMean, batchVariance, _, _, _ = op.FusedBatchNormV3(s, x, gamma, beta, average, variance,
		op.FusedBatchNormV3Epsilon(float32(orDefault(l.Epsilon, 1e-3))), op.FusedBatchNormV3IsTraining(c.Training))
	if c.Training {
		size := op.Cast(s, op.Size(s, x), tensor.Float32)
		n := op.RealDiv(s, size, op.Cast(s, dim(s, x, 3), tensor.Float32))
		batchVariance = op.Mul(s, batchVariance, op.RealDiv(s, op.Sub(s, n, like(s, n, 1)), n))
	}
	return y, batchMean, batchVariance
}

// follow updates a moving average.
func (l *BatchNormalization) follow(c *Context, v *train.Variable, value op.Output) {
	if value.Node == nil || v.Handle.Node == nil {
		return
	}
	s := c.Scope
	step := like(s, value, 1-orDefault(l.Momentum, 0.99))
	c.Update(v.AssignSub(s.ColocateWith(v.Handle.Node), op.Mul(s, op.Sub(s, v.Value, value), step)))
}

// orDefault returns v unless it is 0.
func orDefault(v, byDefault float64) float64 {
	if v == 0 {
		return byDefault
	}
	return v
}

// moments adds the mean and the variance of x over some dimensions.
func moments(s *op.Scope, x op.Output, keep bool, axes ...int) (average, variance op.Output) {
	average = mean(s, x, true, axes...)
	variance = mean(s, op.SquaredDifference(s, x, op.StopGradient(s, average)), true, axes...)
	if keep || average.Node == nil {
		return average, variance
	}
	drop := make([]int64, len(axes))
	for i, a := range axes {
		drop[i] = int64(a)
	}
	return op.Squeeze(s, average, op.SqueezeSqueezeDims(drop)), op.Squeeze(s, variance, op.SqueezeSqueezeDims(drop))
}

// normalize adds (x - average) / sqrt(variance + epsilon) * gamma + beta. gamma and beta may be
// zero Outputs.
func normalize(s *op.Scope, x, average, variance, gamma, beta op.Output, epsilon float64) op.Output {
	scale := op.Rsqrt(s, op.AddV2(s, variance, like(s, variance, epsilon)))
	if gamma.Node != nil {
		scale = op.Mul(s, scale, gamma)
	}
	y := op.Mul(s, op.Sub(s, x, average), scale)
	if beta.Node != nil {
		y = op.AddV2(s, y, beta)
	}
	return y
}
