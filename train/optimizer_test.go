package train_test

import (
	"bufio"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// newScope returns a scope that checks shapes while the graph is built.
func newScope() *op.Scope { return op.NewScope() }

// session returns a session on the graph of a scope, which must have no build errors.
func session(t *testing.T, s *op.Scope) *weft.Session {
	t.Helper()
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sess.Close() })
	return sess
}

// run runs nodes.
func run(t *testing.T, sess *weft.Session, targets ...*graph.Node) {
	t.Helper()
	if _, err := sess.Run(t.Context(), nil, nil, targets); err != nil {
		t.Fatal(err)
	}
}

var optimizers = map[string]func(step *train.Variable) train.Optimizer{
	"GradientDescent": func(*train.Variable) train.Optimizer { return train.NewGradientDescent(0.1) },
	"Momentum":        func(*train.Variable) train.Optimizer { return train.NewMomentum(0.1, 0.9) },
	"Momentum/nesterov": func(*train.Variable) train.Optimizer {
		return &train.Momentum{Rate: 0.1, Momentum: 0.9, Nesterov: true}
	},
	"RMSProp": func(*train.Variable) train.Optimizer { return train.NewRMSProp(0.1) },
	"RMSProp/momentum": func(*train.Variable) train.Optimizer {
		o := train.NewRMSProp(0.1)
		o.Momentum = 0.5
		return o
	},
	"RMSProp/centered": func(*train.Variable) train.Optimizer {
		o := train.NewRMSProp(0.1)
		o.Momentum, o.Centered = 0.5, true
		return o
	},
	"Adagrad": func(*train.Variable) train.Optimizer { return train.NewAdagrad(0.1) },
	"AdagradDA": func(step *train.Variable) train.Optimizer {
		o := train.NewAdagradDA(0.1, step)
		o.L1, o.L2 = 0.01, 0.02
		return o
	},
	"Adadelta": func(*train.Variable) train.Optimizer { return train.NewAdadelta(1) },
	"Adam":     func(*train.Variable) train.Optimizer { return train.NewAdam(0.1) },
	"Ftrl": func(*train.Variable) train.Optimizer {
		o := train.NewFtrl(0.1)
		o.L1, o.L2 = 0.01, 0.02
		return o
	},
	"Ftrl/shrinkage": func(*train.Variable) train.Optimizer {
		o := train.NewFtrl(0.1)
		o.L2Shrinkage = 0.1
		return o
	},
	"ProximalGradientDescent": func(*train.Variable) train.Optimizer {
		return &train.ProximalGradientDescent{Rate: 0.1, L1: 0.01, L2: 0.02}
	},
	"ProximalAdagrad": func(*train.Variable) train.Optimizer {
		return &train.ProximalAdagrad{Rate: 0.1, Initial: 0.1, L1: 0.01, L2: 0.02}
	},
}

// TestOptimizers compares the names and values of all variables after 20 steps with those of
// TensorFlow.
func TestOptimizers(t *testing.T) {
	for key, want := range recordedOptimizers(t) {
		name, kind, _ := strings.Cut(key, " ")
		t.Run(strings.ReplaceAll(key, " ", "/"), func(t *testing.T) {
			resource, sparse := strings.HasPrefix(kind, "resource"), strings.HasSuffix(kind, "sparse")
			s := newScope()
			step := train.GlobalStep(s)
			var opts []train.VariableOption
			if resource {
				opts = append(opts, train.Resource())
			}
			w := train.NewVariable(s, "w", tensor.Shape{4, 2}, tensor.Float32,
				train.Values([][]float32{{.1, .2}, {-.3, .4}, {.5, -.6}, {.7, .8}}), opts...)
			update := train.Minimize(s.SubScope("scope"), optimizers[name](step), loss(s, w, sparse), step)
			init := train.VariablesInitializer(s)
			sess := session(t, s)
			run(t, sess, init)
			for range 20 {
				run(t, sess, update)
			}
			compareVariables(t, s, sess, want)
		})
	}
}

func loss(s *op.Scope, w *train.Variable, sparse bool) op.Output {
	var y, target op.Output
	if sparse {
		y = op.GatherV2(s, w.Value, op.Const(s, []int32{1, 3, 1}), op.Const(s, int32(0)))
		if w.Resource {
			y = op.ResourceGather(s, w.Handle, op.Const(s, []int32{1, 3, 1}), tensor.Float32)
		}
		target = op.Const(s, [][]float32{{1, 0}, {0, 1}, {.5, .5}})
	} else {
		x := op.Const(s, [][]float32{{1, -2, 0, .5}, {0, 1, 1, -1}})
		y, target = op.MatMul(s, x, w.Value), op.Const(s, [][]float32{{1, 0}, {-1, 2}})
	}
	return op.Mean(s, op.Square(s, op.Sub(s, y, target)), op.Const(s, []int32{0, 1}))
}

func compareVariables(t *testing.T, s *op.Scope, sess *weft.Session, want map[string][]float64) {
	t.Helper()
	var names []string
	for _, v := range train.Variables(s, train.GlobalVariables) {
		names = append(names, v.Name)
		out, err := sess.Run(t.Context(), nil, []op.Output{v.Value}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.DType == tensor.Int64 {
			if got := tensor.Value[int64](&out[0]); float64(got) != want[v.Name][0] {
				t.Errorf("%s is %d, want %v", v.Name, got, want[v.Name])
			}
			continue
		}
		got := tensor.Values[float32](&out[0])
		if len(got) != len(want[v.Name]) {
			t.Errorf("%s has %d values, want %d", v.Name, len(got), len(want[v.Name]))
			continue
		}
		for i, x := range want[v.Name] {
			if diff := math.Abs(float64(got[i]) - x); diff > 2e-5*max(0.1, math.Abs(x)) {
				t.Errorf("%s[%d] is %v, want %v", v.Name, i, got[i], x)
			}
		}
	}
	slices.Sort(names)
	var wantNames []string
	for name := range want {
		wantNames = append(wantNames, name)
	}
	slices.Sort(wantNames)
	if !slices.Equal(names, wantNames) {
		t.Errorf("variables are %v, want %v", names, wantNames)
	}
}

// recordedOptimizers reads the values that TensorFlow computed: "optimizer kind" → name of a
// variable → values.
func recordedOptimizers(t *testing.T) map[string]map[string][]float64 {
	t.Helper()
	f, err := os.Open("testdata/optimizers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]map[string][]float64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		fields := strings.Fields(lines.Text())
		key := strings.Join(fields[:3], " ")
		if all[key] == nil {
			all[key] = map[string][]float64{}
		}
		for _, field := range fields[4:] {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				t.Fatal(err)
			}
			all[key][fields[3]] = append(all[key][fields[3]], v)
		}
	}
	if len(all) != 4*len(optimizers) {
		t.Fatalf("%d recorded cases for %d optimizers", len(all), len(optimizers))
	}
	return all
}
