package train_test

import (
	"math"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/internal/test/recorded"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// kerasOptimizers are the optimizers with the settings of the recording. Where the defaults of
// Keras differ from those of TensorFlow 1, they are set.
var kerasOptimizers = map[string]train.Optimizer{
	"sgd":         train.NewGradientDescent(0.1),
	"momentum":    train.NewMomentum(0.1, 0.9),
	"nesterov":    &train.Momentum{Rate: 0.1, Momentum: 0.9, Nesterov: true},
	"adam":        train.NewAdam(0.01),
	"amsgrad off": &train.Adam{Rate: 0.01, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-7},
	"adamw":       &train.AdamW{Adam: train.Adam{Rate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-7}, WeightDecay: 0.1},
	"adagrad":     train.NewAdagrad(0.1),
	"adadelta":    &train.Adadelta{Rate: 1, Rho: 0.95, Epsilon: 1e-7},
	"rmsprop":     &train.RMSProp{Rate: 0.01, Decay: 0.9, Epsilon: 1e-7, FromZero: true},
	"rmsprop momentum centered": &train.RMSProp{
		Rate: 0.01, Decay: 0.9, Momentum: 0.9, Epsilon: 1e-7, Centered: true, FromZero: true,
	},
	"ftrl": &train.Ftrl{Rate: 0.1, Power: -0.5, Initial: 0.1, L1: 0.01, L2: 0.02},
}

// TestKerasOptimizers compares the values of a variable after each of several steps with those in
// Keras.
func TestKerasOptimizers(t *testing.T) {
	for _, tt := range recorded.Read[struct {
		Name              string
		Start             recorded.Array
		Gradients, Values []recorded.Array
	}](t, "testdata/keras_optimizers.json") {
		for _, resource := range []bool{false, true} {
			s := op.NewScope()
			var opts []train.VariableOption
			if resource {
				opts = append(opts, train.Resource())
			}
			start := tt.Start.Tensor(t)
			v := train.NewVariable(s, "v", start.Shape(), tensor.Float32, train.Values(start), opts...)
			grad := op.Placeholder(s, tensor.Float32, op.PlaceholderShape(v.Shape.Partial()))
			update := train.ApplyGradients(s, kerasOptimizers[tt.Name], []train.GradientVariable{{Grad: gradients.Of(grad), Var: v}}, nil)
			sess := begin(t, s)
			for i := range tt.Gradients {
				if err := sess.Exec(t.Context(), weft.Feeds{grad: tt.Gradients[i].Tensor(t)}, update); err != nil {
					t.Fatal(err)
				}
				out, err := sess.Fetch(t.Context(), nil, v.Value)
				if err != nil {
					t.Fatal(err)
				}
				tt.Values[i].Check(t, tt.Name, &out[0], 2e-5)
			}
		}
	}
}

// begin returns a session with initialized variables.
func begin(t *testing.T, s *op.Scope) *weft.Session {
	t.Helper()
	init := train.VariablesInitializer(s)
	sess := session(t, s)
	run(t, sess, init)
	return sess
}

// TestKerasSchedules compares learning rates with those of Keras.
func TestKerasSchedules(t *testing.T) {
	schedules := map[string]train.Schedule{
		"exponential":           train.ExponentialDecay{Rate: 0.1, Steps: 10, Factor: 0.5},
		"exponential staircase": train.ExponentialDecay{Rate: 0.1, Steps: 10, Factor: 0.5, Staircase: true},
		"polynomial":            train.PolynomialDecay{Rate: 0.1, Steps: 20, End: 0.01, Power: 2},
		"cosine":                train.CosineDecay{Rate: 0.1, Steps: 20, End: 0.1},
		"cosine restarts":       train.CosineRestarts{Rate: 0.1, Steps: 6},
		"inverse time":          train.InverseTimeDecay{Rate: 0.1, Steps: 10, Decay: 0.5},
		"piecewise":             train.PiecewiseConstant{Boundaries: []int64{5, 15}, Values: []float64{0.1, 0.05, 0.01}},
	}
	for _, tt := range recorded.Read[struct {
		Name  string
		Rates []float64
	}](t, "testdata/keras_schedules.json") {
		s := op.NewScope()
		step := op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial()))
		rate := schedules[tt.Name].At(s, step)
		sess := session(t, s)
		for i, want := range tt.Rates {
			out, err := sess.Fetch(t.Context(), weft.Feeds{step: tensor.Scalar(int64(i))}, rate)
			if err != nil {
				t.Fatal(err)
			}
			if got := float64(tensor.Value[float32](&out[0])); math.Abs(got-want) > 1e-6*want+1e-8 {
				t.Errorf("%s: the rate at step %d is %v, want %v", tt.Name, i, got, want)
			}
		}
	}
}
