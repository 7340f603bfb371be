package master

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func TestOptimizeOptions(t *testing.T) {
	g, err := graphtext.Parse(kernel.Default, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		rewrite *pb.RewriterConfig
		without []string
	}{
		"default":           {nil, nil},
		"no folding":        {&pb.RewriterConfig{ConstantFolding: pb.RewriterConfig_OFF}, []string{"shapes", "constants"}},
		"no loop pass":      {&pb.RewriterConfig{LoopOptimization: pb.RewriterConfig_OFF}, []string{"branches"}},
		"no dependencies":   {&pb.RewriterConfig{DependencyOptimization: pb.RewriterConfig_OFF}, []string{"unused"}},
		"no meta-optimizer": {&pb.RewriterConfig{DisableMetaOptimizer: true}, []string{"branches", "unused"}},
	} {
		s := &session{
			master: &Master{Config: Config{Log: slog.New(slog.DiscardHandler)}},
			config: &pb.ConfigProto{GraphOptions: &pb.GraphOptions{RewriteOptions: tt.rewrite}},
		}
		if got := s.optimizeOptions(g).Without; !slices.Equal(got, tt.without) {
			t.Errorf("%s: without %v, want %v", name, got, tt.without)
		}
	}
}

// Constants are computed as long as the session exists and there is time. The kernel here ends with
// its context only.
func TestFoldingEnds(t *testing.T) {
	kernels := kernel.NewRegistry()
	kernels.Register(kernel.Op{
		Def: opdef.Def{Name: "Endless", Doc: "Ends with its step.", Out: []string{"y: float32"}, Shape: opdef.ScalarShape},
		Kernels: []kernel.Impl{{Device: kernel.CPU, New: func(*kernel.Construction) (kernel.Kernel, error) {
			return kernel.Func(func(ctx *kernel.Context) error {
				<-ctx.Context().Done()
				return ctx.Context().Err()
			}), nil
		}}},
	})
	g := graph.New(kernels)
	n, err := g.Add("n", "Endless", nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &folder{master: &Master{Config: Config{Kernels: kernels}}, ctx: t.Context(), left: 50 * time.Millisecond}
	for range 1000 {
		if _, err := f.eval(n, nil); err == nil {
			t.Error("an endless kernel has ended")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f = &folder{master: f.master, ctx: ctx, left: time.Hour}
	if _, err := f.eval(n, nil); err == nil {
		t.Error("a constant was computed after the end of the session")
	}
}
