package train_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// screenOf returns the lines of a terminal after text was written to it: "\r" moves the cursor to
// the start of the line, and "\x1b[K" erases what follows the cursor.
func screenOf(text string) []string {
	var lines []string
	line, at := []rune{}, 0
	for rest := []rune(text); len(rest) > 0; rest = rest[1:] {
		switch {
		case rest[0] == '\n':
			lines = append(lines, string(line))
			line, at = nil, 0
		case rest[0] == '\r':
			at = 0
		case strings.HasPrefix(string(rest), "\x1b[K"):
			line, rest = line[:at], rest[2:]
		default:
			line = append(line[:at], append([]rune{rest[0]}, line[min(at+1, len(line)):]...)...)
			at++
		}
	}
	return append(lines, string(line))
}

// TestProgressAndText prints lines and pieces of lines through the hook while it draws its bar: all
// of them are above the bar, which is drawn once.
func TestProgressAndText(t *testing.T) {
	l := newLine(newScope())
	var out strings.Builder
	bar := &train.ProgressHook{Out: &out, Last: 4, Every: 1}
	sess := monitored(t, l, train.TrainingOptions{
		IsChief: true, Hooks: []train.SessionRunHook{bar, &train.StopAtStepHook{LastStep: 4}}, Logger: slog.New(slog.DiscardHandler),
	})
	step := 0
	err := sess.Loop(t.Context(), func(ctx context.Context) error {
		step++
		fmt.Fprintf(bar, "step %d", step)
		_, err := sess.Run(ctx, map[op.Output]tensor.Tensor{l.x: tensor.Scalar(float32(1))}, nil, []*graph.Node{l.update})
		fmt.Fprintf(bar, " is done\nand its second line\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 4 {
		want = append(want, fmt.Sprintf("step %d is done", i+1), "and its second line")
	}
	want = append(want, "["+strings.Repeat("#", 40)+"] 4/4", "")
	if got := screenOf(out.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the terminal shows\n%s", strings.Join(got, "\n"))
	}
}
