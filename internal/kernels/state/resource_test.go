package state

import (
	"context"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// do creates and runs an operation in an environment.
func do(t *testing.T, env *kerneltest.Env, op string, attrs opdef.Attrs, in ...kernel.Value) ([]kernel.Value, error) {
	t.Helper()
	node, err := env.Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	return node.RunValues(in...)
}

func must(t *testing.T, env *kerneltest.Env, op string, attrs opdef.Attrs, in ...kernel.Value) kernel.Value {
	t.Helper()
	out, err := do(t, env, op, attrs, in...)
	if err != nil {
		t.Fatalf("%s: %v", op, err)
	}
	if len(out) == 0 {
		return kernel.Value{}
	}
	return out[0]
}

func value(v tensor.Tensor) kernel.Value { return kernel.Value{Tensor: v} }

func varAttrs(shape ...int64) opdef.Attrs {
	return opdef.Attrs{"dtype": tensor.Float32, "shape": tensor.MakePartial(shape...), "shared_name": "v"}
}

func TestHandlesNameTheVariable(t *testing.T) {
	env := kerneltest.NewEnv()
	h := must(t, env, "VarHandleOp", varAttrs(2))
	got := tensor.Value[*tensor.Handle](&h.Tensor)
	if got.HashCode != 17454915466513971685 || got.TypeName != "N10tensorflow3VarE" || got.Container != "localhost" || got.Name != "v" {
		t.Errorf("handle is %+v", got)
	}
}

func TestReadingAVariableThatIsNotThere(t *testing.T) {
	env := kerneltest.NewEnv()
	h := must(t, env, "VarHandleOp", varAttrs(2))
	for _, tt := range []struct {
		op, text string
		attrs    opdef.Attrs
		code     status.Code
	}{
		{"ReadVariableOp", "Could not find variable v. This could mean that the variable has been deleted. In TF1, it can also mean the " +
			"variable is uninitialized. Debug info: container=localhost, status error message=Container localhost does not exist. " +
			"(Could not find resource: localhost/v)", opdef.Attrs{"dtype": tensor.Float32}, status.FailedPrecondition},
		{"VariableShape", "Container localhost does not exist. (Could not find resource: localhost/v)", nil, status.NotFound},
		{"DestroyResourceOp", "Container localhost does not exist.", opdef.Attrs{"ignore_lookup_error": false}, status.NotFound},
	} {
		_, err := do(t, env, tt.op, tt.attrs, value(h.Tensor))
		if status.CodeOf(err) != tt.code || err.Error() != tt.text {
			t.Errorf("%s: %v: %v", tt.op, status.CodeOf(err), err)
		}
	}
	step := []kernel.Value{value(h.Tensor), value(tensor.Scalar[float32](1)), value(tensor.Vector[float32](1, 2))}
	_, err := do(t, env, "ResourceApplyGradientDescent", opdef.Attrs{"T": tensor.Float32}, step...)
	if status.CodeOf(err) != status.Internal || err.Error() != "Invalid variable reference." {
		t.Errorf("ResourceApplyGradientDescent: %v: %v", status.CodeOf(err), err)
	}
}

func TestBothKindsOfVariableMayHaveOneName(t *testing.T) {
	env := kerneltest.NewEnv()
	h, ref := must(t, env, "VarHandleOp", varAttrs(1)), must(t, env, "VariableV2", varAttrs(1))
	must(t, env, "AssignVariableOp", opdef.Attrs{"dtype": tensor.Float32}, value(h.Tensor), value(tensor.Vector[float32](1)))
	must(t, env, "Assign", opdef.Attrs{"T": tensor.Float32}, ref, value(tensor.Vector[float32](2)))
	read := must(t, env, "ReadVariableOp", opdef.Attrs{"dtype": tensor.Float32}, value(h.Tensor))
	again := must(t, env, "VariableV2", varAttrs(1)).Ref.Load()
	if x, y := tensor.Value[float32](&read.Tensor), tensor.Value[float32](&again); x != 1 || y != 2 {
		t.Errorf("variables are %v and %v, want 1 and 2", x, y)
	}
}

func TestAssignChecksTheDeclaredShape(t *testing.T) {
	env := kerneltest.NewEnv()
	ref := must(t, env, "VariableV2", varAttrs(2))
	_, err := do(t, env, "Assign", opdef.Attrs{"T": tensor.Float32}, ref, value(tensor.Vector[float32](1, 2, 3)))
	if err == nil || err.Error() != "Assign requires shapes of both tensors to match. lhs shape= [2] rhs shape= [3]" {
		t.Errorf("assigning another shape: %v", err)
	}
}

func TestAValueOnceReadNeverChanges(t *testing.T) {
	env := kerneltest.NewEnv()
	ref := must(t, env, "VariableV2", varAttrs(2))
	must(t, env, "Assign", opdef.Attrs{"T": tensor.Float32}, ref, value(tensor.Vector[float32](1, 2)))
	old := ref.Ref.Load()
	must(t, env, "AssignAdd", opdef.Attrs{"T": tensor.Float32}, ref, value(tensor.Vector[float32](10, 10)))
	if x := tensor.Values[float32](&old); x[0] != 1 || x[1] != 2 {
		t.Errorf("the value read before is now %v", x)
	}
}

func TestTemporaryVariable(t *testing.T) {
	env := kerneltest.NewEnv()
	attrs := opdef.Attrs{"dtype": tensor.Float32, "shape": tensor.MakePartial(2), "var_name": "t"}
	ref := must(t, env, "TemporaryVariable", attrs)
	must(t, env, "Assign", opdef.Attrs{"T": tensor.Float32}, ref, value(tensor.Vector[float32](1, 2)))
	destroy := opdef.Attrs{"T": tensor.Float32, "var_name": "t"}
	last := must(t, env, "DestroyTemporaryVariable", destroy, ref)
	if x := tensor.Values[float32](&last.Tensor); x[1] != 2 {
		t.Errorf("last value is %v", x)
	}
	_, err := do(t, env, "DestroyTemporaryVariable", destroy, ref)
	if status.CodeOf(err) != status.NotFound || !strings.Contains(err.Error(), "/t/frame:0/iter:0/N10tensorflow19TemporaryVariableOp6TmpVarE") {
		t.Errorf("destroying twice: %v", err)
	}
}

func TestMutexServesInOrder(t *testing.T) {
	env := kerneltest.NewEnv()
	m := must(t, env, "MutexV2", nil)
	first := must(t, env, "MutexLock", nil, value(m.Tensor))
	got := make(chan kernel.Value)
	go func() {
		out, err := do(t, env, "MutexLock", nil, value(m.Tensor))
		if err != nil {
			t.Error(err)
		}
		got <- out[0]
	}()
	must(t, env, "ConsumeMutexLock", nil, first)
	second := <-got
	ctx, cancel := context.WithCancelCause(t.Context())
	env.Step.Context = ctx
	waiting := make(chan error)
	go func() {
		_, err := do(t, env, "MutexLock", nil, value(m.Tensor))
		waiting <- err
	}()
	cancel(status.Abortedf("over"))
	if err := <-waiting; status.CodeOf(err) != status.Cancelled {
		t.Errorf("waiting ended with %v", err)
	}
	env.Step.Context = t.Context()
	must(t, env, "ConsumeMutexLock", nil, second)
	must(t, env, "ConsumeMutexLock", nil, must(t, env, "MutexLock", nil, value(m.Tensor)))
}
