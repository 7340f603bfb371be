package local_test

import (
	"regexp"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A wrong shape is found while the graph is built, because package local links the shape functions.
func TestWrongShapeIsABuildError(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, 2)))
	op.MatMul(s.Named("product"), x, op.Const(s, [][]float32{{1}, {2}, {3}}))
	_, err := s.Finalize()
	want := `^feeds_test\.go:\d+: MatMul: Dimensions must be equal, but are 2 and 3 for '{{node product}}`
	if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
		t.Errorf("got error %v, want one that matches %s", err, want)
	}
}

func TestFeedsAreChecked(t *testing.T) {
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32, op.PlaceholderShape(tensor.MakePartial(-1, 2)))
	y := op.Square(s.Named("y"), x)
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	call, err := sess.Prepare(t.Context(), weft.Step{Feeds: []op.Output{x}, Fetches: []op.Output{y}})
	if err != nil {
		t.Fatal(err)
	}
	for want, feed := range map[string]tensor.Tensor{
		`Cannot feed value of shape \(3,\) for Tensor x:0, which has shape \(\?, 2\)`: tensor.Vector[float32](1, 2, 3),
		`Cannot feed value of shape \(\) for Tensor x:0, which has shape \(\?, 2\)`:   tensor.Scalar[float32](1),
		`Cannot feed value of type int32 for Tensor x:0, which has type float32`:      tensor.Scalar[int32](1),
		`Cannot feed Tensor x:0: the value is the zero Tensor`:                        {},
	} {
		pattern := regexp.MustCompile(`^feeds_test\.go:\d+: ` + want)
		for name, run := range map[string]func() error{
			"Run": func() error {
				_, err := sess.Run(t.Context(), map[op.Output]tensor.Tensor{x: feed}, []op.Output{y}, nil)
				return err
			},
			"Callable": func() error { _, err := call.Run(t.Context(), feed); return err },
		} {
			if err := run(); status.CodeOf(err) != status.InvalidArgument || !pattern.MatchString(err.Error()) {
				t.Errorf("%s: got error %v, want one that matches %s", name, err, pattern)
			}
		}
	}
	if _, err := sess.Run(t.Context(), map[op.Output]tensor.Tensor{y: tensor.Scalar(true)}, []op.Output{y}, nil); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a bool is fed for a float32: got error %v", err)
	}
}
