package weft_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local" // the target "local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// A program that multiplies on one task of a cluster what it adds on another. The cluster is in
// this process; servers that run elsewhere are connected to by their addresses, "grpc://host:port".
func Example() {
	ctx := context.Background()
	cluster, err := server.StartCluster(map[string]int{"ps": 2}, 1)
	if err != nil {
		panic(err)
	}
	defer func() { _ = cluster.Shutdown(ctx) }()

	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	sum := op.AddV2(s.WithDevice("/job:ps/task:0"), x, op.Const(s, float32(1)))
	y := op.Mul(s.WithDevice("/job:ps/task:1"), sum, sum)
	g, err := s.Finalize()
	if err != nil {
		panic(err)
	}

	sess, err := weft.NewSession(cluster.Target("ps", 0), g)
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	feeds := map[graph.Output]tensor.Tensor{x: tensor.Vector[float32](1, 2)}
	out, err := sess.Run(ctx, feeds, []graph.Output{y}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(out[0].Go())
	// Output: [4 9]
}

// A program that runs what was trained, in its own process.
func ExampleLoadSavedModel() {
	ctx := context.Background()
	m, err := weft.LoadSavedModel(ctx, "local", "savedmodel/testdata/functions", nil)
	if err != nil {
		panic(err)
	}
	defer m.Close()
	sig, err := m.Signature(savedmodel.DefaultSignature)
	if err != nil {
		panic(err)
	}
	out, err := sig.Run(ctx, map[string]any{"x": []float32{0.5, 1.25}, "ids": []int32{2}})
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.4f\n", out["y"])
	// Output: [0.0308 1.9159]
}

// A step that is prepared once and run often.
func ExampleSession_MakeCallable() {
	ctx := context.Background()
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32)
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	square, err := sess.MakeCallable(ctx, []graph.Output{x}, []graph.Output{op.Square(s, x)}, nil)
	if err != nil {
		panic(err)
	}
	for _, v := range []float32{1, 2, 3} {
		out, err := square.Run(ctx, tensor.Scalar(v))
		if err != nil {
			panic(err)
		}
		fmt.Println(out[0].Go())
	}
	// Output:
	// 1
	// 4
	// 9
}

// One file for a model that does not learn any more.
func ExampleFreezeSavedModel() {
	dir, err := os.MkdirTemp("", "frozen")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	frozen, err := weft.FreezeSavedModel(context.Background(), "local", "savedmodel/testdata/lookups", nil, []string{"y"})
	if err != nil {
		panic(err)
	}
	if err := savedmodel.WriteGraph(filepath.Join(dir, "model.pb"), frozen); err != nil {
		panic(err)
	}
	for _, n := range frozen.Nodes {
		if n.Op == "Const" || n.Op == "Placeholder" {
			fmt.Println(n.Op, n.Name)
		}
	}
	// Unordered output:
	// Placeholder x
	// Const w
	// Const b
}
