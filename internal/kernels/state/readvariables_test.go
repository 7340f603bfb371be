package state

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestReadVariables reads two variables, with as many types and with others.
func TestReadVariables(t *testing.T) {
	e := kerneltest.NewEnv()
	node := func(op string, attrs opdef.Attrs, in ...tensor.Tensor) ([]tensor.Tensor, error) {
		n, err := e.MakeNode(op, op, attrs)
		if err != nil {
			t.Fatal(err)
		}
		return n.Run(in...)
	}
	var handles []tensor.Tensor
	for i, name := range []string{"a", "b"} {
		out, err := node("VarHandleOp", opdef.Attrs{"dtype": tensor.Int32, "shape": tensor.MakePartial(), "shared_name": name})
		if err == nil {
			_, err = node("AssignVariableOp", opdef.Attrs{"dtype": tensor.Int32}, out[0], tensor.Scalar(int32(i)))
		}
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, out[0])
	}
	read := func(types ...tensor.DType) ([]tensor.Tensor, error) {
		return node("_ReadVariablesOp", opdef.Attrs{"N": int64(2), "dtypes": types}, handles...)
	}
	out, err := read(tensor.Int32, tensor.Int32)
	if err != nil || tensor.Value[int32](&out[0]) != 0 || tensor.Value[int32](&out[1]) != 1 {
		t.Errorf("got %v, %v", out, err)
	}
	for _, types := range [][]tensor.DType{{tensor.Int32}, {tensor.Int32, tensor.Int32, tensor.Int32}, {tensor.Int32, tensor.Float32}} {
		if _, err := read(types...); status.CodeOf(err) != status.InvalidArgument ||
			!strings.Contains(err.Error(), "Mismatched number") && !strings.Contains(err.Error(), "wrong dtype") {
			t.Errorf("%v: got %v", types, err)
		}
	}
}
