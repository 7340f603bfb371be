package random

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// stateful runs operations on a variable.
type stateful struct {
	env      *kerneltest.Env
	variable *kernel.Variable
}

func newStateful(state tensor.Tensor) *stateful {
	s := &stateful{kerneltest.NewEnv(), kernel.NewVariable()}
	s.variable.Store(state)
	return s
}

// run runs an operation with the handle of the variable as its first input.
func (s *stateful) run(op string, attrs opdef.Attrs, inputs ...tensor.Tensor) ([]tensor.Tensor, error) {
	handle := tensor.Scalar(&tensor.Handle{Device: s.env.Device.Name, Resource: s.variable})
	node, err := s.env.Make(op, attrs)
	if err != nil {
		return nil, err
	}
	return node.Run(append([]tensor.Tensor{handle}, inputs...)...)
}

// TestStateful compares samples, and the variable after each draw, with recorded results of
// TensorFlow.
func TestStateful(t *testing.T) {
	s := newStateful(tensor.Vector[int64](5, 7, 123456789))
	shape, alg := tensor.Vector[int32](3), tensor.Scalar[int64](algPhilox)
	attrs := func(dtype tensor.DType) opdef.Attrs {
		return opdef.Attrs{"dtype": dtype, "shape_dtype": tensor.Int32}
	}
	for _, tt := range []struct {
		op    string
		attrs opdef.Attrs
		in    []tensor.Tensor
		want  any
		next  int64 // first element of the variable afterwards
	}{
		{"StatefulUniform", attrs(tensor.Float32), []tensor.Tensor{alg, shape},
			[]float32{0.18181836605072021, 0.31250011920928955, 0.3404890298843384}, 773},
		{"StatefulStandardNormalV2", attrs(tensor.Float32), []tensor.Tensor{tensor.Scalar[int64](algAuto), shape},
			[]float32{0.9808970093727112, -0.37430018186569214, 0.29183945059776306}, 1541},
		{"StatefulTruncatedNormal", attrs(tensor.Float32), []tensor.Tensor{alg, shape},
			[]float32{-0.15143319964408875, -0.22179748117923737, 0.8395490646362305}, 2309},
		{"StatefulUniformInt", attrs(tensor.Int32), []tensor.Tensor{alg, shape, tensor.Scalar[int32](-5), tensor.Scalar[int32](100)},
			[]int32{47, -5, -1}, 3077},
		{"StatefulUniformFullInt", attrs(tensor.Uint64), []tensor.Tensor{alg, shape},
			[]uint64{17617030825400505497, 1624407527743045435, 3391934238756324721}, 3845},
		{"RngReadAndSkip", nil, []tensor.Tensor{tensor.Scalar[int32](algPhilox), tensor.Scalar[uint64](10)},
			[]int64{3845, 7, 123456789}, 6405},
		{"RngSkip", nil, []tensor.Tensor{alg, tensor.Scalar[int64](3)}, nil, 7173},
	} {
		out, err := s.run(tt.op, tt.attrs, tt.in...)
		if err != nil {
			t.Fatalf("%s: %v", tt.op, err)
		}
		if tt.want != nil && !reflect.DeepEqual(out[0].Go(), tt.want) {
			t.Errorf("%s: got %v, want %v", tt.op, out[0].Go(), tt.want)
		}
		state := s.variable.Load()
		if got, want := state.Go(), []int64{tt.next, 7, 123456789}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the variable is %v, want %v", tt.op, got, want)
		}
		state.Release()
	}
}

func TestTaggedState(t *testing.T) {
	attrs := opdef.Attrs{"dtype": tensor.Float32, "shape_dtype": tensor.Int32}
	shape := tensor.Vector[int32](3)
	tagged := newStateful(tensor.Vector[int64](algPhilox, 773, 7, 123456789))
	got, err := tagged.run("StatefulStandardNormal", attrs, shape)
	if err != nil {
		t.Fatal(err)
	}
	want, err := newStateful(tensor.Vector[int64](773, 7, 123456789)).
		run("StatefulStandardNormalV2", attrs, tensor.Scalar[int64](algPhilox), shape)
	if err != nil {
		t.Fatal(err)
	}
	if diff := kerneltest.Diff(&got[0], &want[0], 0); diff != "" {
		t.Error(diff)
	}
	if state := tagged.variable.Load(); tensor.Values[int64](&state)[1] != 773+3*perSample {
		t.Errorf("the variable is %v", state.Go())
	}
}

func TestStateErrors(t *testing.T) {
	for _, tt := range []struct {
		state tensor.Tensor
		alg   int64
		code  status.Code
		text  string
	}{
		{tensor.Vector[int64](1, 2), 1, status.InvalidArgument, "For the Philox algorithm, the size of state must be at least 3; got 2"},
		{tensor.Vector[int32](1, 2, 3), 1, status.InvalidArgument, "dtype of RNG state variable must be int64, not int32"},
		{tensor.Scalar[int64](1), 1, status.InvalidArgument, "RNG state must have one and only one dimension, not 0"},
		{tensor.Vector[int64](1, 2, 3), 2, status.Unimplemented, "Non-XLA devices don't support the ThreeFry algorithm."},
		{tensor.Vector[int64](1, 2, 3), 7, status.InvalidArgument, "Unsupported algorithm id: 7"},
	} {
		attrs := opdef.Attrs{"dtype": tensor.Float32, "shape_dtype": tensor.Int32}
		_, err := newStateful(tt.state).run("StatefulUniform", attrs, tensor.Scalar(tt.alg), tensor.Vector[int32](3))
		if status.CodeOf(err) != tt.code || err.Error() != tt.text {
			t.Errorf("state %v, algorithm %d: got %v %q, want %v %q", tt.state.Go(), tt.alg, status.CodeOf(err), err, tt.code, tt.text)
		}
	}
}

func TestStatefulBinomial(t *testing.T) {
	s := newStateful(tensor.Vector[int64](5, 7, 123456789))
	attrs := opdef.Attrs{"S": tensor.Int32, "T": tensor.Float32, "dtype": tensor.Int64}
	out, err := s.run("StatefulRandomBinomial", attrs, tensor.Scalar[int64](algPhilox), tensor.Vector[int32](7, 2),
		tensor.Vector[float32](10, 100), tensor.Vector[float32](0.3, 0.6))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tensor.Values[int64](&out[0]), []int64{2, 60, 3, 61, 2, 61, 4, 66, 4, 60, 3, 60, 2, 69}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	state := s.variable.Load()
	defer state.Release()
	if got, want := state.Go(), []int64{256005, 7, 123456789}; !reflect.DeepEqual(got, want) {
		t.Errorf("the variable is %v, want %v", got, want)
	}
}

// TestBinomialKnowsOneAlgorithm checks that other algorithms are rejected, even if no numbers are
// drawn.
func TestBinomialKnowsOneAlgorithm(t *testing.T) {
	attrs := opdef.Attrs{"S": tensor.Int32, "T": tensor.Float32, "dtype": tensor.Float32}
	for _, alg := range []int64{algThreeFry, algAuto, 7} {
		_, err := newStateful(tensor.Vector[int64](1, 2, 3)).run("StatefulRandomBinomial", attrs,
			tensor.Scalar(alg), tensor.Vector[int32](0), tensor.Scalar[float32](1), tensor.Scalar[float32](.5))
		if want := fmt.Sprintf("Unsupported algorithm id: %d", alg); status.CodeOf(err) != status.InvalidArgument || err.Error() != want {
			t.Errorf("algorithm %d: %v, want %s", alg, err, want)
		}
	}
}
