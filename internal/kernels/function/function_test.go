package function

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestRecorded compares kernels and shape functions with recorded results of TensorFlow.
func TestRecorded(t *testing.T) { kerneltest.RunCases(t, "testdata/values.txt") }

func TestShapesOfCalls(t *testing.T) {
	vector, matrix := tensor.MakePartial(2), tensor.MakePartial(-1, 3)
	two := []tensor.DType{tensor.Float32, tensor.Float32}
	f := opdef.Func{Name: "f"}
	tests := []struct {
		op    string
		attrs opdef.Attrs
		in    []tensor.PartialShape
		want  []tensor.PartialShape
		code  status.Code
	}{
		{"While", opdef.Attrs{"T": two, "cond": f, "body": f}, []tensor.PartialShape{vector, matrix}, []tensor.PartialShape{vector, matrix}, 0},
		{"While", opdef.Attrs{"T": two, "cond": f, "body": f, "output_shapes": []tensor.PartialShape{matrix, vector}},
			[]tensor.PartialShape{vector, matrix}, []tensor.PartialShape{matrix, vector}, 0},
		{"While", opdef.Attrs{"T": two, "cond": f, "body": f, "output_shapes": []tensor.PartialShape{matrix}},
			[]tensor.PartialShape{vector, matrix}, nil, status.InvalidArgument},
		{"If", opdef.Attrs{"Tcond": tensor.Bool, "Tin": []tensor.DType{}, "Tout": two, "then_branch": f, "else_branch": f},
			[]tensor.PartialShape{tensor.MakePartial()}, make([]tensor.PartialShape, 2), 0},
		{"Case", opdef.Attrs{"Tin": []tensor.DType{}, "Tout": two, "branches": []opdef.Func{f},
			"output_shapes": []tensor.PartialShape{matrix, vector}},
			[]tensor.PartialShape{tensor.MakePartial()}, []tensor.PartialShape{matrix, vector}, 0},
	}
	for _, tt := range tests {
		got, err := kerneltest.Shapes(tt.op, tt.attrs, tt.in, nil)
		if status.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", tt.op, err)
		}
		for i, want := range tt.want {
			if !got[i].Equal(want) {
				t.Errorf("%s: output %d has shape %v, want %v", tt.op, i, got[i], want)
			}
		}
	}
}

func TestNoLibrary(t *testing.T) {
	_, err := kerneltest.NewEnv().Make("PartitionedCall", opdef.Attrs{
		"Tin": []tensor.DType{}, "Tout": []tensor.DType{}, "f": opdef.Func{Name: "f"},
	})
	if status.CodeOf(err) != status.Internal || err.Error() != "No function library is provided." {
		t.Errorf("got %v", err)
	}
}

func TestUnknownExecutor(t *testing.T) {
	for _, op := range []string{"PartitionedCall", "StatefulPartitionedCall"} {
		_, err := kerneltest.NewEnv().Make(op, opdef.Attrs{
			"Tin": []tensor.DType{}, "Tout": []tensor.DType{}, "f": opdef.Func{Name: "f"}, "executor_type": "OTHER",
		})
		const want = "No executor factory registered for the given executor type: OTHER " +
			"Registered factories are {DEFAULT, , SINGLE_THREADED_EXECUTOR}."
		if status.CodeOf(err) != status.NotFound || err.Error() != want {
			t.Errorf("%s: got %v", op, err)
		}
	}
}

func TestFunctionsOfPython(t *testing.T) {
	for _, op := range []string{"PyFunc", "PyFuncStateless", "EagerPyFunc"} {
		for token, want := range map[string]status.Code{"pyfunc_7": status.InvalidArgument, "\xb0": status.Internal} {
			types := []tensor.DType{tensor.Int32}
			n, err := kerneltest.NewEnv().MakeNode("call", op, opdef.Attrs{"token": token, "Tin": types, "Tout": types})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := n.Run(tensor.Scalar[int32](1)); status.CodeOf(err) != want {
				t.Errorf("%s of %q: %v", op, token, err)
			}
		}
	}
}
