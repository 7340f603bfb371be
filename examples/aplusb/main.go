// Command aplusb adds two variables on two devices of a parameter server:
//
//	weft server --cluster-spec='ps|localhost:2222,worker|localhost:2223' --job-name=ps --task-index=0 --cpu-devices=2 &
//	weft server --cluster-spec='ps|localhost:2222,worker|localhost:2223' --job-name=worker --task-index=0 &
//	go run ./examples/aplusb --target=grpc://localhost:2223
//
// Without --cpu-devices=2 the parameter server has no cpu:1. Soft placement then places b on cpu:0.
// With --soft=false the program fails with "Cannot assign a device for operation". The servers log
// the device of each node.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

func main() {
	target := flag.String("target", "grpc://localhost:2223", "any task of the cluster")
	soft := flag.Bool("soft", true, "use another device if the requested one does not exist")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *target, *soft); err != nil {
		fmt.Fprintln(os.Stderr, "aplusb:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, target string, soft bool) error {
	s := op.NewScope()
	a := train.NewVariable(s.WithDevice("/job:ps/task:0/cpu:0"), "a", tensor.Shape{}, tensor.Int32, train.Ones)
	b := train.NewVariable(s.WithDevice("/job:ps/task:0/cpu:1"), "b", tensor.Shape{}, tensor.Int32, train.Ones)
	sum := op.Add(s, a.Value, b.Value)
	init := train.VariablesInitializer(s)
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	opts := []weft.SessionOption{weft.WithPlacementLog()}
	if soft {
		opts = append(opts, weft.WithSoftPlacement())
	}
	sess, err := weft.NewSession(target, g, opts...)
	if err != nil {
		return err
	}
	defer sess.Close()
	if _, err := sess.Run(ctx, nil, nil, []*graph.Node{init}); err != nil {
		return err
	}
	values, err := sess.Run(ctx, nil, []op.Output{sum}, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, values[0].Go())
	return nil
}
