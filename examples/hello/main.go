// Command hello runs a graph with one constant on a server:
//
//	weft server --cluster-spec='local|localhost:2222' --job-name=local --task-index=0 &
//	go run ./examples/hello --target=grpc://localhost:2222
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
)

func main() {
	target := flag.String("target", "grpc://localhost:2222", "any task of a cluster")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *target); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, target string) error {
	s := op.NewScope()
	hello := op.Const(s, "Hello, distributed TensorFlow!")
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession(target, g)
	if err != nil {
		return err
	}
	defer sess.Close()
	values, err := sess.Run(ctx, nil, []op.Output{hello}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, values[0].Go())
	return nil
}
