package gputest_test

import (
	"context"
	"flag"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/test/metamorphic"
)

var (
	programs = flag.Int("programs", 60, "how many random programs to run")
	first    = flag.Uint64("first", 0, "seed of the first random program")
)

// checkProgram describes how the results of a program over the CPU and both GPUs differ from those
// of the interpreter.
func checkProgram(p *metamorphic.Program) error {
	devices := []string{"/gpu:0", "/gpu:1", "/cpu:0"}
	return metamorphic.Verify(p, devices, func(_ context.Context, g *metamorphic.Graph) (metamorphic.Session, error) {
		return metamorphic.Dial("local", g, weft.WithSoftPlacement())
	})
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
