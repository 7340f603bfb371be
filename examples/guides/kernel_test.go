package guides

import (
	"context"
	"fmt"
	"math"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/gradients"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// softsign computes x / (1 + |x|), in place if no other holder shares the input.
func softsign(ctx *kernel.Context) error {
	x := tensor.Values[float32](ctx.Input(0))
	out, err := ctx.Forward(0, 0)
	if err != nil {
		return err
	}
	y := tensor.Values[float32](out)
	for i, v := range x {
		y[i] = v / (1 + float32(math.Abs(float64(v))))
	}
	return nil
}

func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "GuideSoftsign", Doc: "Computes x / (1 + |x|).",
			In: []string{"x: T"}, Out: []string{"y: T"}, Attrs: []string{"T: {float32}"}, Shape: opdef.SameShape,
		},
		Kernels: kernel.ByType("T", kernel.Table{tensor.Float32: kernel.Stateless(softsign)}),
	})
}

func init() {
	gradients.Register(func(c *gradients.Call) []gradients.Grad {
		s := c.S
		below := op.AddV2(s, op.ConstOf(s, tensor.Float32, 1), op.Abs(s, c.In(0)))
		return gradients.List(op.RealDiv(s, c.DY(0), op.Mul(s, below, below)))
	}, "GuideSoftsign")
}

// Softsign adds the operation to a graph.
func Softsign(s *op.Scope, x op.Output) op.Output {
	n := s.Add("GuideSoftsign", []op.Arg{op.One(x)}, nil)
	if n == nil { // the scope has recorded an error
		return op.Output{}
	}
	return n.Out(0)
}

func runSoftsign(ctx context.Context) error {
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32)
	y := Softsign(s, x)
	dx := gradients.Compute(s, []op.Output{y}, []op.Output{x})[0].Dense
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession("local", g)
	if err != nil {
		return err
	}
	defer sess.Close()
	out, err := sess.Fetch(ctx, weft.Feeds{x: tensor.Vector[float32](-3, 0, 1)}, y, dx)
	if err != nil {
		return err
	}
	fmt.Println(out[0].Go(), out[1].Go())
	return nil
}

func Example_kernel() {
	show(runSoftsign)
	// Output: [-0.75 0 0.5] [0.0625 1 0.25]
}
