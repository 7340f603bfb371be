package gradients

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Run runs a step of the graph that is checked, such as
//
//	func(ctx context.Context, feeds map[op.Output]tensor.Tensor, fetches []op.Output) ([]tensor.Tensor, error) {
//		return session.Run(ctx, feeds, fetches, nil)
//	}
type Run func(ctx context.Context, feeds map[op.Output]tensor.Tensor, fetches []op.Output) ([]tensor.Tensor, error)

// Check compares the gradients of ys with respect to xs, as the rules compute them, with finite
// differences of the ys around a point. feeds holds a value for each x, which is the point, and
// values for the other placeholders that the ys need. Check returns the largest error: the
// difference between the two, divided by the larger of their magnitudes if that is above one.
// Correct rules give less than 1e-6 for float64 and less than 1e-2 for float32, unless the point is
// close to a discontinuity of a value or a slope.
//
// ys and xs are of type float32, float64, complex64 or complex128. The differentiated value is a
// sum of the elements of ys with different weights, so that errors do not cancel. Check adds nodes
// to the graph.
func Check(ctx context.Context, run Run, s *op.Scope, ys, xs []op.Output, feeds map[op.Output]tensor.Tensor) (float64, error) {
	values, err := run(ctx, feeds, ys)
	if err != nil {
		return 0, err
	}
	c := checker{run: run, feeds: map[op.Output]tensor.Tensor{}, ys: ys}
	for o, t := range feeds {
		if c.feeds[o], err = t.Clone(); err != nil {
			return 0, err
		}
	}
	initial := make([]Grad, len(ys))
	for i := range ys {
		weight, err := weights(&values[i])
		if err != nil {
			return 0, err
		}
		c.weights = append(c.weights, weight)
		initial[i] = Of(op.Const(s, weight))
	}
	grads := Compute(s, ys, xs, Initial(initial...))
	if err := s.Err(); err != nil {
		return 0, err
	}
	worst := 0.0
	for i, g := range grads {
		diff, err := c.check(ctx, s, xs[i], g)
		if err != nil {
			return 0, err
		}
		worst = max(worst, diff)
	}
	return worst, nil
}

// checker holds a point and the weighted sum that is differentiated there.
type checker struct {
	run     Run
	feeds   map[op.Output]tensor.Tensor
	ys      []op.Output
	weights []tensor.Tensor
}

// weights returns numbers around one of the type and shape of y.
func weights(y *tensor.Tensor) (tensor.Tensor, error) {
	w, err := y.Clone()
	if err != nil {
		return tensor.Tensor{}, err
	}
	parts, err := parts(&w)
	if err != nil {
		return tensor.Tensor{}, err
	}
	for i := range parts.len() {
		parts.set(i, 1+0.5*math.Sin(float64(3*i+1)))
	}
	return w, nil
}

func (c *checker) check(ctx context.Context, s *op.Scope, x op.Output, g Grad) (float64, error) {
	at, ok := c.feeds[x]
	if !ok {
		return 0, status.InvalidArgumentf("gradients: the feeds have no value for %v", x)
	}
	computed, err := c.computed(ctx, s, g, &at)
	if err != nil {
		return 0, err
	}
	have, err := parts(&computed)
	if err != nil {
		return 0, err
	}
	point, err := parts(&at)
	if err != nil {
		return 0, err
	}
	if !at.Shape().Equal(computed.Shape()) {
		return 0, status.InvalidArgumentf("gradients: the gradient of %v has shape %v, want %v", x, computed.Shape(), at.Shape())
	}
	worst := 0.0
	for i := range point.len() {
		want, err := c.slope(ctx, point, i)
		if err != nil {
			return 0, err
		}
		diff := math.Abs(have.get(i)-want) / max(1, math.Abs(want), math.Abs(have.get(i)))
		if !(diff <= worst) { // also true for NaN
			worst = diff
		}
	}
	return worst, nil
}

// computed returns the value of a gradient, zeros of the shape of x for none.
func (c *checker) computed(ctx context.Context, s *op.Scope, g Grad, x *tensor.Tensor) (tensor.Tensor, error) {
	if g.IsNone() {
		return tensor.Zeros(x.DType(), x.Shape())
	}
	dense := Densify(s, g)
	if err := s.Err(); err != nil {
		return tensor.Tensor{}, err
	}
	out, err := c.run(ctx, c.feeds, []op.Output{dense})
	if err != nil {
		return tensor.Tensor{}, err
	}
	return out[0], nil
}

// slope returns the derivative of the weighted sum by element i of the point, from finite
// differences.
func (c *checker) slope(ctx context.Context, point numbers, i int) (float64, error) {
	was := point.get(i)
	defer point.set(i, was)
	point.set(i, was+point.step())
	above := point.get(i)
	high, err := c.sum(ctx)
	if err != nil {
		return 0, err
	}
	point.set(i, was-point.step())
	below := point.get(i)
	low, err := c.sum(ctx)
	if err != nil {
		return 0, err
	}
	return (high - low) / (above - below), nil
}

// sum returns the sum of the elements of all ys times their weights. For complex ys it is the real
// part of the product with the conjugate weight, which is the meaning of gradients of complex
// values.
func (c *checker) sum(ctx context.Context) (float64, error) {
	out, err := c.run(ctx, c.feeds, c.ys)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for i := range out {
		y, err := parts(&out[i])
		if err != nil {
			return 0, err
		}
		w, err := parts(&c.weights[i])
		if err != nil {
			return 0, err
		}
		if y.len() != w.len() {
			return 0, status.InvalidArgumentf("gradients: the shape of %v changes", c.ys[i])
		}
		for k := range y.len() {
			total += y.get(k) * w.get(k)
		}
	}
	return total, nil
}

// numbers are the elements of a tensor as real numbers; a complex element is two numbers.
type numbers struct {
	f32 []float32
	f64 []float64
}

func parts(t *tensor.Tensor) (numbers, error) {
	switch t.DType() {
	case tensor.Float32:
		return numbers{f32: tensor.Values[float32](t)}, nil
	case tensor.Float64:
		return numbers{f64: tensor.Values[float64](t)}, nil
	case tensor.Complex64:
		flat, err := t.WithElements(tensor.Float32, slices.Concat(t.Shape(), tensor.Shape{2}))
		return numbers{f32: tensor.Values[float32](&flat)}, err
	case tensor.Complex128:
		flat, err := t.WithElements(tensor.Float64, slices.Concat(t.Shape(), tensor.Shape{2}))
		return numbers{f64: tensor.Values[float64](&flat)}, err
	default:
		return numbers{}, fmt.Errorf("gradients: cannot check values of type %s", t.DType().Name())
	}
}

func (n numbers) len() int { return max(len(n.f32), len(n.f64)) }

// step is the size of a finite difference: small compared with the values and large compared with
// the precision of the type.
func (n numbers) step() float64 {
	if n.f32 != nil {
		return 1.0 / 128
	}
	return 1.0 / (1 << 17)
}

func (n numbers) get(i int) float64 {
	if n.f32 != nil {
		return float64(n.f32[i])
	}
	return n.f64[i]
}

func (n numbers) set(i int, v float64) {
	if n.f32 != nil {
		n.f32[i] = float32(v)
		return
	}
	n.f64[i] = v
}
