package train_test

import (
	"math"
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestSchedules compares with rates that TensorFlow computed.
func TestSchedules(t *testing.T) {
	steps := []int64{0, 1, 5, 6, 10, 15, 20, 21, 35, 70}
	for _, tt := range []struct {
		name     string
		schedule train.Schedule
		want     []float64
	}{
		{"exponential", train.ExponentialDecay{Rate: .1, Steps: 10, Factor: .5},
			[]float64{0.1, 0.0933033, 0.07071068, 0.06597539, 0.05, 0.03535534, 0.025, 0.02332582, 0.008838835, 0.00078125}},
		{"exponential staircase", train.ExponentialDecay{Rate: .1, Steps: 10, Factor: .5, Staircase: true},
			[]float64{0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.025, 0.025, 0.0125, 0.00078125}},
		{"natural", train.NaturalExpDecay{Rate: .1, Steps: 10, Decay: .5},
			[]float64{0.1, 0.09512295, 0.07788008, 0.07408182, 0.06065307, 0.04723666, 0.03678795, 0.03499378, 0.0173774, 0.003019739}},
		{"inverse", train.InverseTimeDecay{Rate: .1, Steps: 10, Decay: .5},
			[]float64{0.1, 0.0952381, 0.08, 0.07692308, 0.06666667, 0.05714286, 0.05, 0.04878048, 0.03636364, 0.02222222}},
		{"inverse staircase", train.InverseTimeDecay{Rate: .1, Steps: 10, Decay: .5, Staircase: true},
			[]float64{0.1, 0.1, 0.1, 0.1, 0.06666667, 0.06666667, 0.05, 0.05, 0.04, 0.02222222}},
		{"polynomial", train.PolynomialDecay{Rate: .1, Steps: 20, End: .01, Power: 2},
			[]float64{0.1, 0.091225, 0.060625, 0.0541, 0.0325, 0.015625, 0.01, 0.01, 0.01, 0.01}},
		{"polynomial cycle", train.PolynomialDecay{Rate: .1, Steps: 20, End: .01, Cycle: true},
			[]float64{0.1, 0.0955, 0.0775, 0.073, 0.055, 0.0325, 0.01, 0.05275001, 0.02125, 0.02125}},
		{"piecewise", train.PiecewiseConstant{Boundaries: []int64{5, 10, 20}, Values: []float64{1, .5, .2, .1}},
			[]float64{1, 1, 1, 0.5, 0.5, 0.2, 0.2, 0.1, 0.1, 0.1}},
		{"cosine", train.CosineDecay{Rate: .1, Steps: 20, End: .1},
			[]float64{0.1, 0.09944598, 0.08681981, 0.08145034, 0.055, 0.0231802, 0.01, 0.01, 0.01, 0.01}},
		{"restarts", train.CosineRestarts{Rate: .1, Steps: 10, Lower: .5, End: .1},
			[]float64{0.1, 0.09779754, 0.055, 0.04109422, 0.055, 0.04840991, 0.0325, 0.02898022, 0.03164364, 0.02125}},
		{"restarts even", train.CosineRestarts{Rate: .1, Steps: 10, Longer: 1, Lower: .9},
			[]float64{0.1, 0.09755283, 0.05, 0.03454914, 0.09, 0.045, 0.08099999, 0.07901778, 0.03644999, 0.04782968}},
		{"linear cosine", train.LinearCosineDecay{Rate: .1, Steps: 20},
			[]float64{0.1001, 0.0945152, 0.06411651, 0.05567248, 0.0251, 0.003761165, 0.0001, 0.0001, 0.0001, 0.0001}},
	} {
		s := newScope()
		step := op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))
		rate := tt.schedule.At(s, step)
		sess := session(t, s)
		for i, n := range steps {
			out, err := sess.Run(t.Context(), map[op.Output]tensor.Tensor{step: tensor.Scalar(n)}, []op.Output{rate}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := float64(tensor.Value[float32](&out[0])); math.Abs(got-tt.want[i]) > 1e-6 {
				t.Errorf("%s: after %d steps the rate is %v, want %v", tt.name, n, got, tt.want[i])
			}
		}
	}
}

// TestNoise checks the mean and the standard deviation of the noise.
func TestNoise(t *testing.T) {
	s := newScope()
	s.SetSeed(3)
	step := op.Const(s, int64(0))
	rate := train.LinearCosineDecay{Rate: 1, Steps: 10, Beta: 1e-9, Noise: 0.04, NoiseDecay: 0.5}.At(s, step)
	sess := session(t, s)
	var sum, squares float64
	const n = 400
	for range n {
		out, err := sess.Run(t.Context(), nil, []op.Output{rate}, nil)
		if err != nil {
			t.Fatal(err)
		}
		v := float64(tensor.Value[float32](&out[0]))
		sum, squares = sum+v, squares+v*v
	}
	mean := sum / n
	if spread := math.Sqrt(squares/n - mean*mean); math.Abs(mean-1) > 0.05 || math.Abs(spread-0.2) > 0.03 {
		t.Errorf("mean and standard deviation are %v and %v, want 1 and 0.2", mean, spread)
	}
}
