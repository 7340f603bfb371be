package weft_test

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local" // the target "local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// Add on one task of a cluster and multiply on another. The cluster runs in this process. The
// target of a server elsewhere is "grpc://host:port".
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
	feeds := weft.Feeds{x: tensor.Vector[float32](1, 2)}
	out, err := sess.Fetch(ctx, feeds, y)
	if err != nil {
		panic(err)
	}
	fmt.Println(out[0].Go())
	// Output: [4 9]
}

// Prepare a step once and run it several times.
func ExampleSession_Prepare() {
	ctx := context.Background()
	s := op.NewScope()
	x := op.Placeholder(s, tensor.Float32)
	sess, err := weft.NewSession("local", s.Graph())
	if err != nil {
		panic(err)
	}
	defer sess.Close()
	square, err := sess.Prepare(ctx, weft.Step{Feeds: []graph.Output{x}, Fetches: []graph.Output{op.Square(s, x)}})
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
