package train

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Schedule computes a learning rate from the number of steps. The result is used as the Schedule of
// an optimizer:
//
//	rate := train.CosineDecay{Rate: 0.1, Steps: 1000}.At(s, step.Value)
//	update := train.Minimize(s, &train.GradientDescent{Schedule: rate}, loss, step)
type Schedule interface {
	// At adds the learning rate after a number of steps, an integer scalar. The result is a float32
	// scalar.
	At(s *op.Scope, step op.Output) op.Output
}

// ExponentialDecay multiplies the rate by Factor every Steps steps: Rate * Factor^(step / Steps).
type ExponentialDecay struct {
	Rate      float64 // at the start
	Steps     float64 // after which the rate is Rate * Factor
	Factor    float64
	Staircase bool // change only every Steps steps
}

// At implements [Schedule].
func (d ExponentialDecay) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("ExponentialDecay")
	p := periods(s, step, d.Steps, d.Staircase)
	return op.Mul(result, hyper(s, "initial_learning_rate", d.Rate), op.Pow(s, hyper(s, "decay_rate", d.Factor), p))
}

// NaturalExpDecay is [ExponentialDecay] with the factor exp(-Decay).
type NaturalExpDecay struct {
	Rate      float64 // at the start
	Steps     float64 // after which the rate is Rate * exp(-Decay)
	Decay     float64
	Staircase bool // change only every Steps steps
}

// At implements [Schedule].
func (d NaturalExpDecay) At(s *op.Scope, step op.Output) op.Output {
	return ExponentialDecay{d.Rate, d.Steps, math.Exp(-d.Decay), d.Staircase}.At(s, step)
}

// InverseTimeDecay divides the rate by 1 + Decay * step / Steps.
type InverseTimeDecay struct {
	Rate      float64 // at the start
	Steps     float64 // after which the divisor is 1 + Decay
	Decay     float64
	Staircase bool // change only every Steps steps
}

// At implements [Schedule].
func (d InverseTimeDecay) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("InverseTimeDecay")
	p := periods(s, step, d.Steps, d.Staircase)
	divisor := op.AddV2(s, number(s, 1), op.Mul(s, hyper(s, "decay_rate", d.Decay), p))
	return op.RealDiv(result, hyper(s, "initial_learning_rate", d.Rate), divisor)
}

// PolynomialDecay changes the rate from Rate to End in Steps steps: (Rate - End) * (1 - step /
// Steps)^Power + End. After that it stays at End or, with Cycle, repeats the decay over twice,
// three times … as many steps.
type PolynomialDecay struct {
	Rate  float64 // at the start
	Steps float64
	End   float64 // at the end
	Power float64 // 1 if 0, which is a straight line
	Cycle bool    // repeat the decay
}

// At implements [Schedule].
func (d PolynomialDecay) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("PolynomialDecay")
	if d.Power == 0 {
		d.Power = 1
	}
	one, steps, now := number(s, 1), number(s, d.Steps), castTo(s, step, tensor.Float32)
	if d.Cycle {
		cycle := op.SelectV2(s, op.Equal(s, now, number(s, 0)), one, op.Ceil(s, op.RealDiv(s, now, steps)))
		steps = op.Mul(s, steps, cycle)
	} else {
		now = op.Minimum(s, now, steps)
	}
	left := op.Pow(s, op.Sub(s, one, op.RealDiv(s, now, steps)), number(s, d.Power))
	rate, end := hyper(s, "initial_learning_rate", d.Rate), hyper(s, "end_learning_rate", d.End)
	return op.AddV2(result, op.Mul(s, op.Sub(s, rate, end), left), end)
}

// PiecewiseConstant has the rate Values[i] up to and including the step Boundaries[i], and the last
// value after that.
type PiecewiseConstant struct {
	Boundaries []int64   // steps, in increasing order
	Values     []float64 // one more than Boundaries
}

// At implements [Schedule].
func (d PiecewiseConstant) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("PiecewiseConstant")
	values := make([]float32, len(d.Values))
	for i, v := range d.Values {
		values[i] = float32(v)
	}
	bounds := op.Const(s, append([]int64{}, d.Boundaries...))
	passed := op.Greater(s, castTo(s, step, tensor.Int64), bounds)
	index := op.Sum(s, op.Cast(s, passed, tensor.Int32), op.Const(s, []int32{0}))
	return op.GatherV2(result, op.Const(s, values), index, op.Const(s, int32(0)))
}

// CosineDecay changes the rate from Rate to Rate * End along half a cosine wave in Steps steps.
// After that it stays there (Loshchilov and Hutter, 2016).
type CosineDecay struct {
	Rate  float64 // at the start
	Steps float64
	End   float64 // fraction of Rate at the end
}

// At implements [Schedule].
func (d CosineDecay) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("CosineDecay")
	done := fractionDone(s, step, d.Steps)
	wave := op.Mul(s, number(s, 1-d.End), halfWave(s, done))
	return op.Mul(result, hyper(s, "initial_learning_rate", d.Rate), op.AddV2(s, wave, number(s, d.End)))
}

// CosineRestarts repeats [CosineDecay] in periods (Loshchilov and Hutter, 2016). From one period to
// the next the number of steps is multiplied by Longer and the rate at the start by Lower.
type CosineRestarts struct {
	Rate   float64 // at the start of the first period
	Steps  float64 // of the first period
	Longer float64 // 2 if 0
	Lower  float64 // 1 if 0
	End    float64 // fraction of Rate that is the lower bound
}

// At implements [Schedule].
func (d CosineRestarts) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("SGDRDecay")
	if d.Longer == 0 {
		d.Longer = 2
	}
	if d.Lower == 0 {
		d.Lower = 1
	}
	one, done := number(s, 1), op.RealDiv(s, castTo(s, step, tensor.Float32), number(s, d.Steps))
	var restarts op.Output
	if d.Longer == 1 {
		restarts = op.Floor(s, done)
		done = op.Sub(s, done, restarts)
	} else {
		longer, rest := number(s, d.Longer), op.Sub(s, one, number(s, d.Longer))
		restarts = op.Floor(s, op.RealDiv(s, op.Log(s, op.Sub(s, one, op.Mul(s, done, rest))), op.Log(s, longer)))
		times := op.Pow(s, longer, restarts)
		before := op.RealDiv(s, op.Sub(s, one, times), rest)
		done = op.RealDiv(s, op.Sub(s, done, before), times)
	}
	wave := op.Mul(s, op.Pow(s, number(s, d.Lower), restarts), halfWave(s, done))
	part := op.AddV2(s, op.Mul(s, number(s, 1-d.End), wave), number(s, d.End))
	return op.Mul(result, hyper(s, "initial_learning_rate", d.Rate), part)
}

// LinearCosineDecay is a linear decay multiplied by a cosine wave (Bello et al., 2017):
// Rate * ((Alpha + line) * wave + Beta), where line falls from 1 to 0 in Steps steps and wave is
// (1 + cos(2 * pi * Periods * step / Steps)) / 2.
type LinearCosineDecay struct {
	Rate    float64 // at the start
	Steps   float64
	Periods float64 // 0.5 if 0
	Alpha   float64
	Beta    float64 // 0.001 if 0

	// Noise is the initial variance of normal noise that is added to line; 0 for none. The variance
	// falls as (1 + step)^-NoiseDecay. The seed is that of the graph.
	Noise      float64
	NoiseDecay float64
}

// At implements [Schedule].
func (d LinearCosineDecay) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("LinearCosineDecay")
	if d.Periods == 0 {
		d.Periods = 0.5
	}
	if d.Beta == 0 {
		d.Beta = 0.001
	}
	steps := number(s, d.Steps)
	now := op.Minimum(s, castTo(s, step, tensor.Float32), steps)
	line := op.RealDiv(s, op.Sub(s, steps, now), steps)
	if d.Noise > 0 {
		variance := op.RealDiv(s, number(s, d.Noise), op.Pow(s, op.AddV2(s, number(s, 1), now), number(s, d.NoiseDecay)))
		s1, s2 := s.Seeds(nil)
		noise := op.RandomStandardNormal(s, op.Const(s, []int32{}), tensor.Float32, op.RandomStandardNormalSeed(s1), op.RandomStandardNormalSeed2(s2))
		line = op.AddV2(s, line, op.Mul(s, noise, op.Sqrt(s, variance)))
	}
	wave := halfWave(s, op.Mul(s, number(s, 2*d.Periods), op.RealDiv(s, now, steps)))
	part := op.AddV2(s, op.Mul(s, op.AddV2(s, number(s, d.Alpha), line), wave), number(s, d.Beta))
	return op.Mul(result, hyper(s, "initial_learning_rate", d.Rate), part)
}

// number adds a float32 constant.
func number(s *op.Scope, v float64) op.Output { return op.ConstOf(s, tensor.Float32, v) }

// periods adds step / steps, rounded down if whole.
func periods(s *op.Scope, step op.Output, steps float64, whole bool) op.Output {
	p := op.RealDiv(s, castTo(s, step, tensor.Float32), number(s, steps))
	if whole {
		return op.Floor(s, p)
	}
	return p
}

// fractionDone adds step / steps, at most 1.
func fractionDone(s *op.Scope, step op.Output, steps float64) op.Output {
	all := number(s, steps)
	return op.RealDiv(s, op.Minimum(s, castTo(s, step, tensor.Float32), all), all)
}

// halfWave adds (1 + cos(pi * x)) / 2.
func halfWave(s *op.Scope, x op.Output) op.Output {
	return op.Mul(s, number(s, 0.5), op.AddV2(s, number(s, 1), op.Cos(s, op.Mul(s, number(s, math.Pi), x))))
}
