package metamorphic_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/test/metamorphic"
	"github.com/weft-ml/weft/internal/test/testcluster"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

var (
	programs = flag.Int("programs", 150, "how many random programs to run")
	first    = flag.Uint64("first", 0, "seed of the first random program")
	keep     = flag.String("keep", "", "directory to which programs that fail are written, as small as possible")
)

// way is one way to run a program.
type way struct {
	name    string
	devices []string
	session func(ctx context.Context, g *metamorphic.Graph) (metamorphic.Session, error)
}

// ways starts the clusters and clients that run programs.
func ways(t testing.TB) []way {
	one := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 1}})
	several := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 1}, CPUDevices: 3})
	tasks := map[string]int{"ps": 2, "worker": 2}
	memory := testcluster.New(t, testcluster.Options{Jobs: tasks})
	grpc, err := server.StartCluster(tasks, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := grpc.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	spread := []string{"/job:worker/task:0", "/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:1"}
	return []way{
		{"one device", []string{""}, inMemory(one)},
		{"several devices", []string{"/cpu:0", "/cpu:1", "/cpu:2"}, inMemory(several)},
		{"several tasks", spread, inMemory(memory)},
		{"grpc", spread, func(_ context.Context, g *metamorphic.Graph) (metamorphic.Session, error) {
			return metamorphic.Dial(grpc.Target("worker", 0), g, weft.WithNetwork())
		}},
	}
}

// check describes how the results of a way differ from those of the interpreter.
func (w way) check(p *metamorphic.Program) error {
	if err := metamorphic.Verify(p, w.devices, w.session); err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	return nil
}

// memorySession is a session on a testcluster.
type memorySession struct{ session *testcluster.Session }

func inMemory(c *testcluster.Cluster) func(context.Context, *metamorphic.Graph) (metamorphic.Session, error) {
	return inMemoryWith(c, &pb.ConfigProto{IsolateSessionState: true})
}

func inMemoryWith(c *testcluster.Cluster, config *pb.ConfigProto) func(context.Context, *metamorphic.Graph) (metamorphic.Session, error) {
	return func(ctx context.Context, g *metamorphic.Graph) (metamorphic.Session, error) {
		def, err := pbconv.GraphToProto(g.Def)
		if err != nil {
			return nil, err
		}
		s, err := c.SessionOf(ctx, c.Node("worker", 0), def, config)
		return memorySession{s}, err
	}
}

func (s memorySession) Init(ctx context.Context, nodes []string) error {
	_, err := s.session.Step(ctx, nil, nil, nodes, nil)
	return err
}

func (s memorySession) Step(ctx context.Context, feeds map[string]tensor.Tensor, fetches []string) ([]tensor.Tensor, error) {
	resp, err := s.session.Step(ctx, feeds, fetches, nil, nil)
	if err != nil {
		return nil, err
	}
	byName := map[string]tensor.Tensor{}
	for _, named := range resp.Tensors {
		byName[named.Name] = named.Tensor
	}
	out := make([]tensor.Tensor, len(fetches))
	for i, name := range fetches {
		out[i] = byName[name]
	}
	return out, nil
}

func (s memorySession) Close() error { return s.session.Close(context.Background()) }

// TestRandomPrograms runs random programs in every way. Failing programs are minimized and written
// to the folder in the flag -keep. Programs in testdata are run by TestScripts.
func TestRandomPrograms(t *testing.T) {
	n := *programs
	if testing.Short() {
		n = min(n, 20)
	}
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for i := range uint64(n) {
			seeds <- *first + i
		}
	}()
	all := ways(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for seed := range seeds {
				runSeed(t, all, seed)
			}
		})
	}
	wg.Wait()
}

func runSeed(t *testing.T, all []way, seed uint64) {
	p := metamorphic.Generate(seed)
	if _, err := metamorphic.Check(p); err != nil {
		t.Errorf("seed %d: %v\n%v", seed, err, p)
		return
	}
	for _, w := range all {
		if err := w.check(p); err != nil {
			small := metamorphic.Minimize(p, func(p *metamorphic.Program) bool { return w.check(p) != nil })
			t.Errorf("seed %d: %v\nas small as possible: %v\n%v", seed, err, w.check(small), small)
			if *keep != "" {
				text := fmt.Sprintf("# Seed %d, %s.\n%v", seed, w.name, small)
				if err := os.WriteFile(filepath.Join(*keep, fmt.Sprintf("seed%d.txt", seed)), []byte(text), 0o666); err != nil {
					t.Error(err)
				}
			}
			return
		}
	}
}

// TestScripts runs the programs in testdata: some that once failed, and some that show every
// statement.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := ways(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := metamorphic.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range all {
				if err := w.check(p); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
