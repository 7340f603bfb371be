package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestGamma compares with the derivative of the quantile: d sample / d alpha = -(∂P/∂alpha) / (∂P/∂sample), with P the
// distribution function and differences of it.
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
		fetches = append(fetches, want, gradients.Add(s, outs{x}, outs{alpha})[0].Dense)
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
