package gradients_test

import (
	"math"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestGamma compares with the derivative of the quantile: d sample / d alpha = -(∂P/∂alpha) /
// (∂P/∂sample), with P the distribution function and differences of it.
func TestGamma(t *testing.T) {
	s := op.NewScope()
	alpha := op.Const(s, []float64{0.7, 3})
	counts, seed := ints(s, 3, 2), op.Const(s, []int64{1, 2})
	alg := op.StatelessRandomGetAlg(s)
	key, counter := op.StatelessRandomGetKeyCounter(s, seed)
	samples := outs{
		op.RandomGamma(s, ints(s, 3), alpha, op.RandomGammaSeed(5)), op.StatelessRandomGammaV2(s, counts, seed, alpha),
		op.StatelessRandomGammaV3(s, counts, key, counter, alg, alpha),
	}
	markChecked("RandomGamma", "StatelessRandomGammaV2", "StatelessRandomGammaV3")
	step := op.Const(s, 1e-5)
	slope := func(at func(d op.Output) op.Output) op.Output { return op.Sub(s, at(step), at(op.Neg(s, step))) }
	var fetches outs
	for _, x := range samples {
		byAlpha := slope(func(d op.Output) op.Output {
			return op.Igamma(s, op.AddV2(s, op.Mul(s, op.OnesLike(s, x), alpha), d), x)
		})
		byX := slope(func(d op.Output) op.Output {
			return op.Igamma(s, op.Mul(s, op.OnesLike(s, x), alpha), op.AddV2(s, x, d))
		})
		want := op.Neg(s, op.Sum(s, op.RealDiv(s, byAlpha, byX), ints(s, 0)))
		fetches = append(fetches, want, gradients.Compute(s, outs{x}, outs{alpha})[0].Dense)
	}
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	out, err := sess.Run(t.Context(), nil, fetches, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(out); i += 2 {
		want, got := tensor.Values[float64](&out[i]), tensor.Values[float64](&out[i+1])
		for k := range want {
			if d := (got[k] - want[k]) / want[k]; d > 1e-3 || d < -1e-3 || len(got) != 2 {
				t.Errorf("%s: got %v, want %v", samples[i/2].Node.Op.Name, got, want)
				break
			}
		}
	}
}

// TestTruncatedNormal compares with the derivative of the quantile by the bounds. By mean and
// deviation samples move as if the bounds moved with them.
func TestTruncatedNormal(t *testing.T) {
	markChecked("StatelessParameterizedTruncatedNormal")
	mean, deviation := []float64{0, 0.5, -1, 2}, []float64{1, 0.5, 2, 1}
	low, high := []float64{-1, 0.3, -4, 1.5}, []float64{0.5, 2, 0.5, 3}
	s := op.NewScope()
	params := outs{op.Const(s, mean), op.Const(s, deviation), op.Const(s, low), op.Const(s, high)}
	x := op.StatelessParameterizedTruncatedNormal(s, ints(s, 4), op.Const(s, []int64{7, 1}), params[0], params[1], params[2], params[3])
	fetches := outs{x}
	for _, g := range gradients.Compute(s, outs{x}, params) {
		fetches = append(fetches, g.Dense)
	}
	var out [5][]float64
	for i, v := range run(s, nil, fetches...) {
		out[i] = tensor.Values[float64](&v)
	}
	normal := func(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }
	const d = 1e-6
	for i, x := range out[0] {
		quantile := func(x, low, high float64) float64 {
			z := func(x float64) float64 { return normal((x - mean[i]) / deviation[i]) }
			return (z(x) - z(low)) / (z(high) - z(low))
		}
		density := quantile(x+d, low[i], high[i]) - quantile(x-d, low[i], high[i])
		want := [4]float64{
			1, (x - mean[i]) / deviation[i],
			-(quantile(x, low[i]+d, high[i]) - quantile(x, low[i]-d, high[i])) / density,
			-(quantile(x, low[i], high[i]+d) - quantile(x, low[i], high[i]-d)) / density,
		}
		for k, w := range want {
			if got := out[1+k][i]; math.Abs(got-w) > 1e-6 {
				t.Errorf("sample %d, parameter %d: got %v, want %v", i, k, got, w)
			}
		}
	}
}
