// Command matmul lists the devices of a cluster, and multiplies two matrices on one of them:
//
//	weft server --cluster-spec='local|localhost:2222' --job-name=local --task-index=0 &
//	go run ./examples/matmul --target=grpc://localhost:2222
//
// The server logs the device of each node.
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
	device := flag.String("device", "/cpu:0", "device of the multiplication")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *target, *device); err != nil {
		fmt.Fprintln(os.Stderr, "matmul:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, target, device string) error {
	s := op.NewScope().WithDevice(device)
	a := op.Const(s.Named("a"), [][]float32{{1, 2, 3}, {4, 5, 6}})
	b := op.Const(s.Named("b"), [][]float32{{1, 2}, {3, 4}, {5, 6}})
	c := op.MatMul(s, a, b)
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession(target, g, weft.WithPlacementLog())
	if err != nil {
		return err
	}
	defer sess.Close()
	devices, err := sess.ListDevices(ctx)
	if err != nil {
		return err
	}
	for _, d := range devices {
		fmt.Fprintln(out, d.Name)
	}
	values, err := sess.Run(ctx, nil, []op.Output{c}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, values[0].Go())
	return nil
}
