package master

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/kernel"
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
