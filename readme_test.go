package weft_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// addOnCluster is the program in the README, with a target in place of its address. TestReadme
// compares the two.
func addOnCluster(ctx context.Context, target string) (any, error) {
	// README begin
	s := op.NewScope()
	x, y := op.Placeholder(s, tensor.Float32), op.Placeholder(s, tensor.Float32)
	sum := op.AddV2(s.WithDevice("/job:worker/task:1"), x, y)
	g, err := s.Finalize() // reports every build error, with file and line
	if err != nil {
		return nil, err
	}
	sess, err := weft.NewSession(target, g)
	if err != nil {
		return nil, err
	}
	defer sess.Close()
	feeds := weft.Feeds{x: tensor.Scalar[float32](1), y: tensor.Scalar[float32](2)}
	out, err := sess.Fetch(ctx, feeds, sum) // out[0].Go() == float32(3)
	// README end
	if err != nil {
		return nil, err
	}
	return out[0].Go(), nil
}

// TestReadme runs the program in the README on a cluster in this process.
func TestReadme(t *testing.T) {
	cluster, err := server.StartCluster(map[string]int{"worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if got, err := addOnCluster(t.Context(), cluster.Target("worker", 0)); err != nil || got != float32(3) {
		t.Errorf("got %v, %v, want 3", got, err)
	}

	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(source), "\t// README begin\n", "\t// README end\n")
	want = strings.ReplaceAll("\n"+want, "\n\t", "\n")[1:]
	want = strings.NewReplacer("return nil, err", "return err", "NewSession(target,", `NewSession("grpc://localhost:2223",`).Replace(want)
	if got := between(t, string(page), "```go\n", "```\n"); got != want {
		t.Errorf("the README has\n%s\nwant\n%s", got, want)
	}
}

func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, begin)
	found, _, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("no text between %q and %q", begin, end)
	}
	return found
}
