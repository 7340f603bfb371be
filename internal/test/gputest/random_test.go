package gputest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/test/metamorphic"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

var (
	programs = flag.Int("programs", 60, "how many random programs to run")
	first    = flag.Uint64("first", 0, "seed of the first random program")
)

// stepTimeout is the time after which a step is considered to hang.
const stepTimeout = time.Minute

// runProgram returns the results of the steps of a program over the CPU and both GPUs.
func runProgram(p *metamorphic.Program) (out [][]tensor.Tensor, err error) {
	built, err := metamorphic.Build(p, metamorphic.Options{Devices: []string{"/gpu:0", "/gpu:1", "/cpu:0"}})
	if err != nil {
		return nil, err
	}
	g, err := graph.Import(built.Def, kernel.Default, graph.ImportOptions{})
	if err != nil {
		return nil, err
	}
	s, err := weft.NewSession("local", g, weft.WithIsolation(), weft.WithSoftPlacement())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	var init []*graph.Node
	for _, name := range built.Init {
		init = append(init, g.Node(name))
	}
	if err := s.Exec(ctx, nil, init...); err != nil {
		return nil, err
	}
	output := func(name string) graph.Output {
		node, i := graph.ParseInput(name)
		return g.Node(node).Out(i)
	}
	var fetches []graph.Output
	for _, name := range built.Fetches {
		fetches = append(fetches, output(name))
	}
	for step := range p.Steps() {
		feeds := weft.Feeds{}
		for i, f := range p.Feeds {
			feeds[output(built.Feeds[i])] = f.Values[step]
		}
		got, err := s.Fetch(ctx, feeds, fetches...)
		if err != nil {
			return out, fmt.Errorf("step %d: %w", step, err)
		}
		out = append(out, got)
	}
	return out, nil
}

// checkProgram describes how the results of a program differ from those of the interpreter.
func checkProgram(p *metamorphic.Program) error {
	got, err := runProgram(p)
	if err != nil {
		return err
	}
	for step, want := range metamorphic.Interpret(p) {
		for i := range want {
			if !metamorphic.Equal(&got[step][i], &want[i]) {
				return fmt.Errorf("step %d, result %d: got %v, want %v", step, i, &got[step][i], &want[i])
			}
		}
	}
	return nil
}

// noKernel is in the error of a function with a node that has no kernel for a GPU. All nodes of a
// function whose caller is on a GPU run there, as in TensorFlow.
const noKernel = "OpKernel for 'GPU' devices compatible with node"

// TestRandomPrograms runs random programs over the CPU and both GPUs. go test -first and -programs
// run others.
func TestRandomPrograms(t *testing.T) {
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for i := range uint64(*programs) {
			seeds <- *first + i
		}
	}()
	var refused atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for seed := range seeds {
				p := metamorphic.Generate(seed)
				switch err := checkProgram(p); {
				case err == nil:
				case strings.Contains(err.Error(), noKernel):
					refused.Add(1)
				default:
					t.Errorf("seed %d: %v\n%v", seed, err, p)
				}
			}
		})
	}
	wg.Wait()
	if n := int(refused.Load()); n > 1 && n > *programs/10 {
		t.Errorf("%d of %d programs have functions without kernels", n, *programs)
	}
}
