package train

import (
	"math"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Schedule says how a learning rate changes as training goes on.
type Schedule interface {
	// At adds the rate at a number of steps, a float32 scalar.
	At(s *op.Scope, step op.Output) op.Output
}

// ExponentialDecay multiplies the rate by Factor every so many steps.
type ExponentialDecay struct {
	Rate      float64 // at the start
	Steps     float64 // after which the rate is Rate * Factor
	Factor    float64
	Staircase bool // change every Steps steps only, not in between
}

// At implements [Schedule].
func (d ExponentialDecay) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("ExponentialDecay")
	p := periods(s, step, d.Steps, d.Staircase)
	return op.Mul(result, hyper(s, "initial_learning_rate", d.Rate), op.Pow(s, hyper(s, "decay_rate", d.Factor), p))
}

// NaturalExpDecay is the [ExponentialDecay] with factor exp(-Decay).
type NaturalExpDecay struct {
	Rate      float64 // at the start
	Steps     float64 // after which the rate is Rate * exp(-Decay)
	Decay     float64
	Staircase bool // change every Steps steps only, not in between
}

// At implements [Schedule].
func (d NaturalExpDecay) At(s *op.Scope, step op.Output) op.Output {
	return ExponentialDecay{d.Rate, d.Steps, math.Exp(-d.Decay), d.Staircase}.At(s, step)
}

// InverseTimeDecay divides the rate by 1 + Decay * step / Steps.
type InverseTimeDecay struct {
	Rate      float64 // at the start
	Steps     float64
	Decay     float64
	Staircase bool // change every Steps steps only, not in between
}

// At implements [Schedule].
func (d InverseTimeDecay) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("InverseTimeDecay")
	p := periods(s, step, d.Steps, d.Staircase)
	divisor := op.AddV2(s, number(s, 1), op.Mul(s, hyper(s, "decay_rate", d.Decay), p))
	return op.RealDiv(result, hyper(s, "initial_learning_rate", d.Rate), divisor)
}

// PolynomialDecay goes from Rate to End in so many steps and stays there, or begins again over
// twice, three times as many.
type PolynomialDecay struct {
	Rate  float64 // at the start
	Steps float64
	End   float64
	Power float64 // of the part of the way that is left; 0 stands for 1, a straight line
	Cycle bool    // begin again
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

// PiecewiseConstant has a value up to and including each boundary, and one more after the last.
type PiecewiseConstant struct {
	Boundaries []int64   // steps, growing
	Values     []float64 // one more than boundaries
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

// CosineDecay goes from Rate to Rate * End along half a wave in so many steps, and stays there
// (Loshchilov and Hutter, 2016).
type CosineDecay struct {
	Rate  float64 // at the start
	Steps float64
	End   float64 // part of the rate that stays
}

// At implements [Schedule].
func (d CosineDecay) At(s *op.Scope, step op.Output) op.Output {
	s, result := s.Composite("CosineDecay")
	done := fractionDone(s, step, d.Steps)
	wave := op.Mul(s, number(s, 1-d.End), halfWave(s, done))
	return op.Mul(result, hyper(s, "initial_learning_rate", d.Rate), op.AddV2(s, wave, number(s, d.End)))
}

// CosineRestarts is the [CosineDecay] that begins again and again, each time longer and lower
// (Loshchilov and Hutter, 2016).
type CosineRestarts struct {
	Rate   float64 // at the start
	Steps  float64 // of the first time
	Longer float64 // ratio of the steps of one time to those before; 0 stands for 2
	Lower  float64 // ratio of the rates at which they begin; 0 stands for 1
	End    float64 // part of the rate that stays
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

// LinearCosineDecay falls in a straight line, along which it swings (Bello et al., 2017): the rate
// is that at the start times (Alpha + line) * wave + Beta.
type LinearCosineDecay struct {
	Rate    float64 // at the start
	Steps   float64 // in which the line reaches zero
	Periods float64 // of the wave; 0 stands for 0.5
	Alpha   float64
	Beta    float64 // 0 stands for 0.001

	// Noise adds normal noise to the line, whose variance falls as (1 + step) ** -NoiseDecay. Its
	// seed is the graph's.
	Noise      float64 // variance at the start; 0 for none
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

// periods returns how often so many steps have passed, whole times only if asked for.
func periods(s *op.Scope, step op.Output, steps float64, whole bool) op.Output {
	p := op.RealDiv(s, castTo(s, step, tensor.Float32), number(s, steps))
	if whole {
		return op.Floor(s, p)
	}
	return p
}

// fractionDone returns the part of so many steps that is done, at most one.
func fractionDone(s *op.Scope, step op.Output, steps float64) op.Output {
	all := number(s, steps)
	return op.RealDiv(s, op.Minimum(s, castTo(s, step, tensor.Float32), all), all)
}

// halfWave returns (1 + cos(pi * x)) / 2.
func halfWave(s *op.Scope, x op.Output) op.Output {
	return op.Mul(s, number(s, 0.5), op.AddV2(s, number(s, 1), op.Cos(s, op.Mul(s, number(s, math.Pi), x))))
}
