package gradients_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestRecorded compares gradients with those that TensorFlow computes, once where shapes are known
// as the graph is built and once where they are not. Not recorded are some where the gradient of
// TensorFlow is not that of the values, which other tests compare with differences: of complex
// numbers in products of segments, MulNoNan, Xlogy, Xlog1py, Xdivy, MatrixSolveLs,
// MatrixSquareRoot, TridiagonalSolve and the values of Svd; of several diagonals in MatrixDiagV2
// and MatrixDiagPartV2; and of transforms of real numbers that cut their input off.
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/recorded/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded cases")
	}
	for _, file := range files {
		cases, err := kerneltest.ReadCases(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			for i := range cases {
				for _, known := range []bool{true, false} {
					if err := runRecorded(t, &cases[i], known); err != nil {
						t.Errorf("%s:%d %s, shapes known %v: %v", file, cases[i].Line, cases[i].Op, known, err)
					}
				}
			}
		})
	}
}

func runRecorded(t *testing.T, c *kerneltest.Case, known bool) error {
	s := op.NewScope()
	feeds := map[op.Output]tensor.Tensor{}
	value := func(v tensor.Tensor) op.Output {
		shape := tensor.PartialShape{}
		if known {
			shape = v.Shape().Partial()
		}
		x := op.Placeholder(s, v.DType(), op.PlaceholderShape(shape))
		feeds[x] = v
		return x
	}
	xs := make([]op.Output, len(c.In))
	for i, v := range c.In {
		xs[i] = value(v)
	}
	node, err := addRecorded(s, c, xs)
	switch {
	case err != nil && !known:
		return nil // the operation itself needs shapes
	case err != nil:
		return err
	}
	var ys []op.Output
	var initial []gradients.Grad
	for i, dy := range c.DY {
		if dy.Value.Initialized() {
			ys, initial = append(ys, node.Out(i)), append(initial, gradients.Of(op.Identity(s, value(dy.Value))))
		}
	}
	grads := gradients.Compute(s, ys, xs, gradients.Initial(initial...))
	return compareRecorded(t, s, feeds, grads, c)
}

// addRecorded adds the node of a case.
func addRecorded(s *op.Scope, c *kerneltest.Case, xs []op.Output) (*graph.Node, error) {
	def, ok := s.Graph().LookupOp(c.Op)
	if !ok {
		return nil, fmt.Errorf("no such operation")
	}
	var args []op.Arg
	for _, a := range def.Inputs {
		n := c.Attrs.Int(a.NumberAttr)
		if a.TypeListAttr != "" {
			n = len(c.Attrs.Types(a.TypeListAttr))
		} else if a.NumberAttr == "" {
			args, xs = append(args, op.One(xs[0])), xs[1:]
			continue
		}
		args, xs = append(args, op.Many(xs[:n])), xs[n:]
	}
	node := s.Add(c.Op, args, c.Attrs)
	return node, s.Err()
}

func compareRecorded(t *testing.T, s *op.Scope, feeds map[op.Output]tensor.Tensor, grads []gradients.Grad, c *kerneltest.Case) error {
	if err := s.Err(); err != nil {
		return err
	}
	var fetches []op.Output
	for i, g := range grads {
		if want := c.DX[i]; g.IsNone() == want.Value.Initialized() || (g.Slices != nil) != want.Sparse {
			return fmt.Errorf("input %d: none %v, sparse %v, want none %v, sparse %v", i, g.IsNone(), g.Slices != nil,
				!want.Value.Initialized(), want.Sparse)
		}
		if !g.IsNone() {
			fetches = append(fetches, gradients.Densify(s, g))
		}
	}
	g, err := s.Finalize()
	if err != nil || len(fetches) == 0 {
		return err
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		return err
	}
	defer sess.Close()
	out, err := sess.Run(t.Context(), feeds, fetches, nil)
	if err != nil {
		return err
	}
	k := 0
	for i, want := range c.DX {
		if !want.Value.Initialized() {
			continue
		}
		if diff := kerneltest.Diff(&out[k], &want.Value, recordedTolerance(c, out[k].DType())); diff != "" {
			return fmt.Errorf("input %d: %s", i, diff)
		}
		k++
	}
	return nil
}

// recordedTolerance leaves room for formulas that are rounded in other places.
func recordedTolerance(c *kerneltest.Case, dtype tensor.DType) float64 {
	switch {
	case c.Tol > 0:
		return c.Tol
	case dtype == tensor.Float64 || dtype == tensor.Complex128:
		return 1e-9
	default:
		return 3e-5
	}
}
