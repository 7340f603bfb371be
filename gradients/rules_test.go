package gradients_test

import (
	"context"
	"math"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// A ruleCase is a graph whose gradients are compared with differences.
type ruleCase struct {
	name  string
	in    []input
	build func(s *op.Scope, x []op.Output) []op.Output
}

// An input is a point at which a graph is differentiated.
type input struct {
	dtype  tensor.DType
	shape  tensor.Shape
	lo, hi float64 // of the values, which are spread over it
	values []float64
}

// in is a float64 input with values between -1 and 1, away from 0.
func in(dims ...int64) input { return input{dtype: tensor.Float64, shape: dims, lo: -1, hi: 1} }

// within returns the input with values between lo and hi.
func (x input) within(lo, hi float64) input {
	x.lo, x.hi = lo, hi
	return x
}

// of returns the input with another type.
func (x input) of(dtype tensor.DType) input {
	x.dtype = dtype
	return x
}

// tensor returns the values of input number k: a fixed scatter of the range, no two alike.
func (x input) tensor(t *testing.T, k int) tensor.Tensor {
	t.Helper()
	n := int(x.shape.NumElements())
	if x.dtype.IsComplex() {
		n *= 2
	}
	v := make([]float64, n)
	for i := range v {
		_, frac := math.Modf(0.37 + 0.61803398875*float64(i) + 0.21*float64(k))
		v[i] = x.lo + (x.hi-x.lo)*frac
		if math.Abs(v[i]) < 0.05 {
			v[i] += 0.11
		}
	}
	copy(v, x.values)
	var out tensor.Tensor
	var err error
	switch x.dtype {
	case tensor.Float64:
		out, err = tensor.FromSlice(x.shape, v)
	case tensor.Complex128:
		c := make([]complex128, n/2)
		for i := range c {
			c[i] = complex(v[2*i], v[2*i+1])
		}
		out, err = tensor.FromSlice(x.shape, c)
	case tensor.Complex64:
		c := make([]complex64, n/2)
		for i := range c {
			c[i] = complex(float32(v[2*i]), float32(v[2*i+1]))
		}
		out, err = tensor.FromSlice(x.shape, c)
	case tensor.Float32:
		f := make([]float32, n)
		for i := range f {
			f[i] = float32(v[i])
		}
		out, err = tensor.FromSlice(x.shape, f)
	default:
		t.Fatalf("no values of type %v", x.dtype)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// one makes the build function of an operation of one input and one output.
func one(f func(*op.Scope, op.Output) op.Output) func(*op.Scope, []op.Output) []op.Output {
	return func(s *op.Scope, x []op.Output) []op.Output { return []op.Output{f(s, x[0])} }
}

// two makes the build function of an operation of two inputs and one output.
func two(f func(s *op.Scope, x, y op.Output) op.Output) func(*op.Scope, []op.Output) []op.Output {
	return func(s *op.Scope, x []op.Output) []op.Output { return []op.Output{f(s, x[0], x[1])} }
}

// all makes the build function of an operation of any number of inputs and one output.
func all(f func(s *op.Scope, x []op.Output) op.Output) func(*op.Scope, []op.Output) []op.Output {
	return func(s *op.Scope, x []op.Output) []op.Output { return []op.Output{f(s, x)} }
}

// ints is a vector of constants.
func ints(s *op.Scope, v ...int32) op.Output { return op.Const(s, v) }

func checkRules(t *testing.T, cases []ruleCase) {
	for _, c := range cases {
		markChecked(c.name)
		t.Run(c.name, func(t *testing.T) {
			if diff, limit := checkRule(t, c); !(diff <= limit) {
				t.Errorf("gradients and differences are %g apart, want at most %g", diff, limit)
			}
		})
	}
}

func checkRule(t *testing.T, c ruleCase) (diff, limit float64) {
	t.Helper()
	s := op.NewScope()
	xs, feeds := make([]op.Output, len(c.in)), map[op.Output]tensor.Tensor{}
	limit = 1e-6
	for i, x := range c.in {
		xs[i] = op.Placeholder(s, x.dtype, op.PlaceholderShape(x.shape.Partial()))
		feeds[xs[i]] = x.tensor(t, i)
		if x.dtype == tensor.Float32 || x.dtype == tensor.Complex64 {
			limit = 1e-2
		}
	}
	ys := c.build(s, xs)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	s.Graph().Versions.Producer = 1 // newer graphs must not have deprecated operations
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	run := func(ctx context.Context, feeds map[op.Output]tensor.Tensor, fetches []op.Output) ([]tensor.Tensor, error) {
		return sess.Run(ctx, feeds, fetches, nil)
	}
	diff, err = gradients.Check(t.Context(), run, s, ys, xs, feeds)
	if err != nil {
		t.Fatal(err)
	}
	return diff, limit
}
