package state

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestCreateVariableKeepsAValue has the values of TensorFlow 0.12.
func TestCreateVariableKeepsAValue(t *testing.T) {
	env, attrs := kerneltest.NewEnv(), opdef.Attrs{"dtype": tensor.Float32}
	h := must(t, env, "VarHandleOp", varAttrs(2))
	create := func() { must(t, env, "CreateVariableOp", attrs, value(h.Tensor), value(tensor.Vector[float32](1, 2))) }
	check := func(want ...float32) {
		t.Helper()
		read := must(t, env, "ReadVariableOp", attrs, value(h.Tensor))
		if got := tensor.Values[float32](&read.Tensor); !slices.Equal(got, want) {
			t.Errorf("the variable is %v, want %v", got, want)
		}
	}
	create()
	check(1, 2)
	must(t, env, "AssignAddVariableOp", attrs, value(h.Tensor), value(tensor.Vector[float32](1, 1)))
	check(2, 3)
	create()
	check(2, 3)
}
