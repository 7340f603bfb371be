package weft_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestHints checks that the errors of common mistakes name the line of the program and say what to
// do, and keep the code and the text that programs match on.
func TestHints(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	v := train.NewVariable(s, "v", tensor.Shape{}, tensor.Float32, train.Zeros)
	r := train.NewVariable(s, "r", tensor.Shape{}, tensor.Float32, train.Zeros, train.Resource())
	for _, tt := range []struct {
		fetch op.Output
		code  status.Code
		want  []string
	}{
		{op.Neg(s, x), status.InvalidArgument, []string{"You must feed a value for placeholder tensor 'x'", "put it into the feeds of the step"}},
		{v.Value, status.FailedPrecondition, []string{"Attempting to use uninitialized value v", "run train.VariablesInitializer"}},
		{op.CheckNumerics(s, op.Log(s, op.Neg(s, op.Exp(s, op.Const(s, float32(0))))), "the loss"), status.InvalidArgument, []string{"the loss"}},
		{r.Value, status.FailedPrecondition, []string{"r", "run train.VariablesInitializer"}},
	} {
		sess, err := weft.NewSession("local", s.Graph())
		if err != nil {
			t.Fatal(err)
		}
		_, err = sess.Fetch(t.Context(), nil, tt.fetch)
		if status.CodeOf(err) != tt.code || !strings.HasPrefix(err.Error(), "hints_test.go:") {
			t.Errorf("got %v", err)
		}
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if err := sess.Close(); err != nil {
			t.Error(err)
		}
	}
}
