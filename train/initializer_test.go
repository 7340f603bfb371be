package train_test

import (
	"math"
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestSeed compares random initial values with those of TensorFlow 2.21's initializers of the same
// names and seed.
func TestSeed(t *testing.T) {
	seed := train.Seed(42)
	for name, test := range map[string]struct {
		init train.Initializer
		want [6]float32
	}{
		"RandomUniform":   {train.RandomUniform(-1, 1, seed), [6]float32{0.90454292, 0.35481548, 0.59063649, 0.51156354, -0.048088789, 0.26202965}},
		"RandomNormal":    {train.RandomNormal(1, 2, seed), [6]float32{0.43844986, 0.72449577, -0.35265923, 1.0491608, -0.7871691, -0.65694654}},
		"TruncatedNormal": {train.TruncatedNormal(0, 0.5, seed), [6]float32{-0.14038754, -0.06887605, -0.33816481, 0.012290206, -0.23422736, -0.0012331592}},
		"GlorotUniform":   {train.GlorotUniform(seed), [6]float32{0.99087715, 0.38868093, 0.64700985, 0.56038976, -0.052678585, 0.28703916}},
		"GlorotNormal":    {train.GlorotNormal(seed), [6]float32{-0.20187877, -0.099044494, -0.48628461, 0.01767345, -0.33682144, -0.0017732962}},
		"HeUniform":       {train.HeUniform(seed), [6]float32{1.5667142, 0.61455834, 1.0230123, 0.88605392, -0.083292246, 0.45384872}},
		"HeNormal":        {train.HeNormal(seed), [6]float32{-0.31919837, -0.1566031, -0.76888347, 0.027944176, -0.53256148, -0.0028038274}},
	} {
		s := newScope()
		v := train.NewVariable(s, "v", tensor.Shape{2, 3}, tensor.Float32, test.init)
		sess := session(t, s)
		run(t, sess, v.Initializer)
		out, err := sess.Run(t.Context(), nil, []op.Output{v.Value}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range tensor.Values[float32](&out[0]) {
			if math.Abs(float64(got-test.want[i])) > 1e-6 {
				t.Errorf("%s: element %d is %v, want %v", name, i, got, test.want[i])
			}
		}
	}
}
