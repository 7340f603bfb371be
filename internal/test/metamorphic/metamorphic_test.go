package metamorphic_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/test/metamorphic"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

var (
	programs = flag.Int("programs", 150, "how many random programs to run")
	first    = flag.Uint64("first", 0, "seed of the first random program")
	keep     = flag.String("keep", "", "directory to which programs that fail are written, as small as possible")
)

// stepTimeout is the time after which a step is considered to hang.
const stepTimeout = time.Minute

// way is one way to run a program.
type way struct {
	name    string
	devices []string
	session func(ctx context.Context, g *metamorphic.Graph) (session, error)
}

// session runs the steps of one program.
type session interface {
	init(ctx context.Context, nodes []string) error
	step(ctx context.Context, feeds map[string]tensor.Tensor, fetches []string) ([]tensor.Tensor, error)
	close() error
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
		{"grpc", spread, func(_ context.Context, g *metamorphic.Graph) (session, error) { return dial(grpc, g) }},
	}
}

// run returns the results of the steps of a program.
func (w way) run(p *metamorphic.Program) (out [][]tensor.Tensor, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	g, err := metamorphic.Build(p, metamorphic.Options{Devices: w.devices})
	if err != nil {
		return nil, err
	}
	s, err := w.session(ctx, g)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if len(g.Init) > 0 {
		if err := s.init(ctx, g.Init); err != nil {
			return nil, err
		}
	}
	for step := range p.Steps() {
		feeds := map[string]tensor.Tensor{}
		for i, f := range p.Feeds {
			feeds[g.Feeds[i]] = f.Values[step]
		}
		got, err := s.step(ctx, feeds, g.Fetches)
		if err != nil {
			return out, fmt.Errorf("step %d: %w", step, err)
		}
		out = append(out, got)
	}
	return out, nil
}

// check describes how the results of a way differ from those of the interpreter.
func (w way) check(p *metamorphic.Program) error {
	got, err := w.run(p)
	if err != nil {
		return fmt.Errorf("%s: %w", w.name, err)
	}
	for step, want := range metamorphic.Interpret(p) {
		for i := range want {
			if !metamorphic.Equal(&got[step][i], &want[i]) {
				return fmt.Errorf("%s: step %d, result %d: got %v, want %v", w.name, step, i, &got[step][i], &want[i])
			}
		}
	}
	return nil
}

// memorySession is a session on a testcluster.
type memorySession struct{ *testcluster.Session }

func inMemory(c *testcluster.Cluster) func(context.Context, *metamorphic.Graph) (session, error) {
	return inMemoryWith(c, &pb.ConfigProto{IsolateSessionState: true})
}

func inMemoryWith(c *testcluster.Cluster, config *pb.ConfigProto) func(context.Context, *metamorphic.Graph) (session, error) {
	return func(ctx context.Context, g *metamorphic.Graph) (session, error) {
		def, err := pbconv.GraphToProto(g.Def)
		if err != nil {
			return nil, err
		}
		s, err := c.SessionOf(ctx, c.Node("worker", 0), def, config)
		return memorySession{s}, err
	}
}

func (s memorySession) init(ctx context.Context, nodes []string) error {
	_, err := s.Step(ctx, nil, nil, nodes, nil)
	return err
}

func (s memorySession) step(ctx context.Context, feeds map[string]tensor.Tensor, fetches []string) ([]tensor.Tensor, error) {
	resp, err := s.Step(ctx, feeds, fetches, nil, nil)
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

func (s memorySession) close() error { return s.Close(context.Background()) }

// clientSession is a session of the client, over connections.
type clientSession struct {
	*weft.Session
	graph *graph.Graph
}

func dial(c *server.Cluster, g *metamorphic.Graph) (session, error) {
	imported, err := graph.Import(g.Def, kernel.Default, graph.ImportOptions{})
	if err != nil {
		return nil, err
	}
	s, err := weft.NewSession(c.Target("worker", 0), imported, weft.WithNetwork(), weft.WithIsolation())
	return clientSession{s, imported}, err
}

func (s clientSession) init(ctx context.Context, names []string) error {
	targets := make([]*graph.Node, len(names))
	for i, name := range names {
		targets[i] = s.graph.Node(name)
	}
	_, err := s.Run(ctx, nil, nil, targets)
	return err
}

func (s clientSession) output(name string) graph.Output {
	node, i := graph.ParseInput(name)
	return s.graph.Node(node).Out(i)
}

func (s clientSession) step(ctx context.Context, feeds map[string]tensor.Tensor, fetches []string) ([]tensor.Tensor, error) {
	fed := map[graph.Output]tensor.Tensor{}
	for name, v := range feeds {
		fed[s.output(name)] = v
	}
	outs := make([]graph.Output, len(fetches))
	for i, name := range fetches {
		outs[i] = s.output(name)
	}
	return s.Run(ctx, fed, outs, nil)
}

func (s clientSession) close() error { return s.Close() }

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
