package nn_test

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/recorded"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// layerCase is what Keras computes for a layer. The gradients are those of the sum of the outputs
// times cos(0), cos(1) ….
type layerCase struct {
	Name       string
	Training   bool
	X          recorded.Array
	Weights    map[string]*recorded.Array
	Y          recorded.Array
	DX         *recorded.Array
	DWeights   map[string]*recorded.Array
	After      map[string]*recorded.Array // variables that are not trained, after the step
	Parameters int
}

// masked is the mask of the masked cases.
var masked = [][]bool{{true, true, true, false}, {true, true, false, false}}

// withMask sets the mask of the input of a layer.
type withMask struct{ nn.Layer }

func (l withMask) Apply(c *nn.Context, x op.Output) op.Output {
	x = op.Identity(c.Scope, x)
	c.SetMask(x, op.Const(c.Scope, masked))
	return l.Layer.Apply(c, x)
}

// attendMasked passes a mask of the values to an attention.
type attendMasked struct{ *nn.MultiHeadAttention }

func (l attendMasked) Apply(c *nn.Context, x op.Output) op.Output {
	mask := op.ExpandDims(c.Scope, op.Const(c.Scope, masked), op.Const(c.Scope, int32(1)))
	return l.Attend(c, x, x, x, mask)
}

var layers = map[string]nn.Layer{
	"dense":                               &nn.Dense{Units: 3, Activation: nn.ReLU},
	"dense without bias":                  &nn.Dense{Units: 3, NoBias: true},
	"conv1d":                              &nn.Conv1D{Filters: 4, Kernel: []int{3}, Activation: nn.Tanh},
	"conv1d same strides":                 &nn.Conv1D{Filters: 4, Kernel: []int{3}, Strides: []int{2}, Padding: nn.Same},
	"conv1d causal dilated":               &nn.Conv1D{Filters: 2, Kernel: []int{3}, Padding: nn.Causal, Dilation: []int{2}},
	"conv2d":                              &nn.Conv2D{Filters: 4, Kernel: []int{3}},
	"conv2d same strides":                 &nn.Conv2D{Filters: 3, Kernel: []int{3, 2}, Strides: []int{2, 1}, Padding: nn.Same, NoBias: true},
	"conv2d dilated":                      &nn.Conv2D{Filters: 2, Kernel: []int{2}, Dilation: []int{2}},
	"conv2d groups":                       &nn.Conv2D{Filters: 4, Kernel: []int{3}, Groups: 2},
	"conv3d":                              &nn.Conv3D{Filters: 2, Kernel: []int{2}, Padding: nn.Same},
	"conv3d strides":                      &nn.Conv3D{Filters: 2, Kernel: []int{2, 1, 2}, Strides: []int{1, 2, 1}},
	"conv1d transpose":                    &nn.Conv1DTranspose{Filters: 3, Kernel: []int{3}, Strides: []int{2}},
	"conv2d transpose":                    &nn.Conv2DTranspose{Filters: 3, Kernel: []int{3}},
	"conv2d transpose same":               &nn.Conv2DTranspose{Filters: 3, Kernel: []int{3}, Strides: []int{2}, Padding: nn.Same},
	"conv3d transpose":                    &nn.Conv3DTranspose{Filters: 2, Kernel: []int{2}, Strides: []int{2}},
	"depthwise conv1d":                    &nn.DepthwiseConv1D{Kernel: []int{3}, Multiplier: 2},
	"depthwise conv2d":                    &nn.DepthwiseConv2D{Kernel: []int{3}, Strides: []int{2}, Padding: nn.Same},
	"separable conv2d":                    &nn.SeparableConv2D{Filters: 4, Depthwise: nn.Depthwise{Kernel: []int{3}, Multiplier: 2}},
	"max pooling1d":                       &nn.MaxPooling1D{},
	"max pooling2d":                       &nn.MaxPooling2D{Size: []int{3}, Strides: []int{2}, Padding: nn.Same},
	"max pooling3d":                       &nn.MaxPooling3D{Size: []int{1, 2, 2}},
	"average pooling1d":                   &nn.AveragePooling1D{},
	"average pooling2d":                   &nn.AveragePooling2D{Size: []int{3}, Strides: []int{2}, Padding: nn.Same},
	"average pooling3d":                   &nn.AveragePooling3D{Size: []int{1, 2, 2}},
	"global max pooling1d":                &nn.GlobalMaxPooling1D{},
	"global max pooling2d":                &nn.GlobalMaxPooling2D{KeepDims: true},
	"global max pooling3d":                &nn.GlobalMaxPooling3D{},
	"global average pooling1d":            &nn.GlobalAveragePooling1D{},
	"global average pooling2d":            &nn.GlobalAveragePooling2D{KeepDims: true},
	"global average pooling3d":            &nn.GlobalAveragePooling3D{},
	"batch normalization":                 &nn.BatchNormalization{},
	"batch normalization training":        &nn.BatchNormalization{Momentum: 0.9},
	"batch normalization images":          &nn.BatchNormalization{},
	"batch normalization images training": &nn.BatchNormalization{Epsilon: 1e-2},
	"batch normalization plain":           &nn.BatchNormalization{NoCenter: true, NoScale: true},
	"layer normalization":                 &nn.LayerNormalization{},
	"group normalization":                 &nn.GroupNormalization{Groups: 2},
	"embedding":                           &nn.Embedding{InputDim: 7, OutputDim: 4},
	"flatten":                             &nn.Flatten{},
	"reshape":                             &nn.Reshape{Shape: []int{4, -1}},
	"up sampling2d":                       &nn.UpSampling2D{},
	"zero padding":                        &nn.ZeroPadding{Before: []int{1, 2}, After: []int{0, 1}},
	"simple rnn":                          &nn.SimpleRNN{Units: 3},
	"lstm":                                &nn.LSTM{Units: 3},
	"lstm sequences":                      &nn.LSTM{Units: 3, ReturnSequences: true},
	"lstm backwards":                      &nn.LSTM{Units: 3, ReturnSequences: true, GoBackwards: true, NoBias: true},
	"gru":                                 &nn.GRU{Units: 3},
	"gru sequences":                       &nn.GRU{Units: 3, ReturnSequences: true},
	"gru without bias":                    &nn.GRU{Units: 3, NoBias: true},
	"bidirectional lstm":                  &nn.Bidirectional{Layer: &nn.LSTM{Units: 3, ReturnSequences: true}},
	"bidirectional gru sum":               &nn.Bidirectional{Layer: &nn.GRU{Units: 3}, Merge: nn.MergeSum},
	"masked lstm":                         withMask{&nn.LSTM{Units: 3, ReturnSequences: true}},
	"masked gru":                          withMask{&nn.GRU{Units: 3}},
	"masked lstm backwards":               withMask{&nn.LSTM{Units: 3, GoBackwards: true}},
	"masked bidirectional lstm":           withMask{&nn.Bidirectional{Layer: &nn.LSTM{Units: 3}}},
	"attention":                           &nn.MultiHeadAttention{NumHeads: 2, KeyDim: 3},
	"attention value dim":                 &nn.MultiHeadAttention{NumHeads: 2, KeyDim: 3, ValueDim: 2, OutputDim: 3},
	"attention causal":                    &nn.MultiHeadAttention{NumHeads: 2, KeyDim: 3, NoBias: true, Causal: true},
	"attention masked":                    attendMasked{&nn.MultiHeadAttention{NumHeads: 2, KeyDim: 3}},
}

var activations = map[string]nn.Activation{
	"relu": nn.ReLU, "relu6": nn.ReLU6, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "softmax": nn.Softmax, "log_softmax": nn.LogSoftmax,
	"softplus": nn.Softplus, "softsign": nn.Softsign, "elu": nn.ELU, "selu": nn.SELU, "exponential": nn.Exponential, "silu": nn.SiLU,
	"hard_sigmoid": nn.HardSigmoid, "mish": nn.Mish, "gelu": nn.GELU, "leaky_relu": nn.LeakyReLU(0.2),
}

// TestLayers compares outputs, gradients and moving averages with those of Keras, for the same
// weights and inputs.
func TestLayers(t *testing.T) {
	tested := map[string]bool{}
	for _, tt := range recorded.Read[layerCase](t, "testdata/layers.json") {
		tested[tt.Name] = true
		t.Run(tt.Name, func(t *testing.T) {
			layer := layers[tt.Name]
			if name, ok := strings.CutPrefix(tt.Name, "activation "); ok {
				layer = &nn.ActivationLayer{Func: activations[name]}
			}
			if layer == nil {
				t.Fatal("there is no such layer")
			}
			checkLayer(t, layer, &tt)
		})
	}
	for name := range layers {
		if !tested[name] {
			t.Errorf("%s is not recorded", name)
		}
	}
}

func checkLayer(t *testing.T, layer nn.Layer, tt *layerCase) {
	s := op.NewScope()
	x := tt.X.Tensor(t)
	shape := slices.Clone(tt.X.Shape)
	shape[0] = -1 // a batch of any size
	in := op.Placeholder(s.Named("x"), x.DType(), op.PlaceholderShape(tensor.MakePartial(shape...)))
	c := nn.NewContext(s, tt.Training)
	y := layer.Apply(c, in)
	factor := op.Cos(s, op.Cast(s, op.Range(s, op.Const(s, int32(0)), op.Size(s, y), op.Const(s, int32(1))), tensor.Float32))
	total := op.Sum(s, op.Mul(s, op.Reshape(s, y, op.Const(s, []int32{-1})), factor), op.Const(s, []int32{0}))

	vars := variables(t, s, tt.Weights)
	feeds := weft.Feeds{in: x}
	var init []*graph.Node
	xs := []op.Output{in}
	want := []*recorded.Array{tt.DX}
	names := []string{"x"}
	for _, name := range slices.Sorted(maps.Keys(tt.Weights)) {
		v := vars[name]
		value := op.Placeholder(s, tensor.Float32)
		feeds[value] = tt.Weights[name].Tensor(t)
		init = append(init, v.Assign(s, value))
		if d := tt.DWeights[name]; d != nil {
			xs, want, names = append(xs, v.Handle), append(want, d), append(names, name)
		}
	}
	if tt.DX == nil {
		xs, want, names = xs[1:], want[1:], names[1:]
	}
	fetches := []op.Output{y}
	for _, g := range gradients.Compute(s, []op.Output{total}, xs) {
		fetches = append(fetches, gradients.Densify(s, g))
	}
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	if known := s.ShapeOf(y); !known.CompatibleWith(tt.Y.Shape) || known.Rank() < 1 || known.Dim(-1) != tt.Y.Shape[len(tt.Y.Shape)-1] {
		t.Errorf("the output has the known shape %v, want %v", known, tt.Y.Shape)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if len(init) > 0 {
		if err := sess.Exec(t.Context(), feeds, init...); err != nil {
			t.Fatal(err)
		}
	}
	out, err := sess.Run(t.Context(), weft.Feeds{in: x}, fetches, nil)
	if err != nil {
		t.Fatal(err)
	}
	tt.Y.Check(t, "output", &out[0], 2e-5)
	for i := range want {
		want[i].Check(t, "gradient of "+names[i], &out[i+1], 1e-4)
	}
	checkUpdates(t, sess, c, vars, x, in, tt)
}

// variables returns the variables of the graph by their names within the layer.
func variables(t *testing.T, s *op.Scope, want map[string]*recorded.Array) map[string]*train.Variable {
	t.Helper()
	out := map[string]*train.Variable{}
	for _, v := range train.Variables(s, train.GlobalVariables) {
		_, name, _ := strings.Cut(v.Name, "/")
		out[name] = v
	}
	if got := slices.Sorted(maps.Keys(out)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("the variables are %v, want %v", got, slices.Sorted(maps.Keys(want)))
	}
	return out
}

// checkUpdates runs a training step and compares the variables that are not trained.
func checkUpdates(t *testing.T, sess *weft.Session, c *nn.Context, vars map[string]*train.Variable, x tensor.Tensor, in op.Output, tt *layerCase) {
	t.Helper()
	if len(c.Updates()) > 0 {
		if err := sess.Exec(t.Context(), weft.Feeds{in: x}, c.Updates()...); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range tt.After {
		out, err := sess.Fetch(t.Context(), nil, vars[name].Value)
		if err != nil {
			t.Fatal(err)
		}
		want.Check(t, name+" after the step", &out[0], 2e-5)
	}
	n := int64(0)
	for _, v := range vars {
		n += v.Shape.NumElements()
	}
	if n != int64(tt.Parameters) {
		t.Errorf("%d parameters, want %d", n, tt.Parameters)
	}
}

// TestDropout checks what no recording can: the fraction that is dropped, the scale, and that
// dropout does nothing outside of training.
func TestDropout(t *testing.T) {
	s := op.NewScope()
	s.SetSeed(1)
	layer := &nn.Dropout{Rate: 0.25}
	c := nn.NewContext(s, true)
	x := op.Const(s, make1000())
	outs := fetch(t, s, layer.Apply(c, x), layer.Apply(c.For(false), x))
	dropped, sum := 0, 0.0
	for _, v := range tensor.Values[float32](&outs[0]) {
		switch {
		case v == 0:
			dropped++
		case math.Abs(float64(v)-4.0/3) > 1e-6:
			t.Fatalf("an element is %v, want 4/3", v)
		}
	}
	for _, v := range tensor.Values[float32](&outs[1]) {
		sum += float64(v)
	}
	if dropped < 210 || dropped > 290 || sum != 1000 {
		t.Errorf("%d of 1000 elements are 0, want about 250; outside of training the sum is %v", dropped, sum)
	}
}

func make1000() []float32 {
	v := make([]float32, 1000)
	for i := range v {
		v[i] = 1
	}
	return v
}

// fetch returns values of a graph whose variables have their initial values.
func fetch(t *testing.T, s *op.Scope, outs ...op.Output) []tensor.Tensor {
	t.Helper()
	var init *graph.Node
	if len(train.Variables(s, train.GlobalVariables)) > 0 {
		init = train.VariablesInitializer(s)
	}
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sess.Close() })
	if init != nil {
		if err := sess.Exec(t.Context(), nil, init); err != nil {
			t.Fatal(err)
		}
	}
	values, err := sess.Fetch(t.Context(), nil, outs...)
	if err != nil {
		t.Fatal(err)
	}
	return values
}
