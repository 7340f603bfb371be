package train

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// TestProgressBar draws the bar of a terminal, and the line that replaces it.
func TestProgressBar(t *testing.T) {
	var b strings.Builder
	p := newProgress(&b, 2, 4)
	if p.terminal {
		t.Fatal("a buffer is not a terminal")
	}
	p.terminal = true
	total := newTotals(nil)
	total.sum(2, []tensor.Tensor{tensor.Scalar[float32](0.25)})
	p.batch(0, total)
	p.batch(0, total) // too early for another update
	p.epoch(Epoch{Epoch: 1, Seconds: 2, Values: map[string]float64{"val_loss": 2, "accuracy": 0.5, "loss": 1}})
	got := strings.ReplaceAll(b.String(), "\r", "<")
	line := "epoch 1/2 2.0s loss 1 accuracy 0.5 val_loss 2"
	bar := "epoch 1/2 [=====...............] 1/4 loss 0.25"
	if want := "<" + bar + "<" + line + strings.Repeat(" ", max(len(bar)-len(line), 0)) + "\n"; got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}
