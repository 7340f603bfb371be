package main

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/train"
)

// TestQuality trains the short forms and compares their results with those that the table promises.
func TestQuality(t *testing.T) {
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			h, err := e.fit(t.Context(), e.short, train.FitOptions{Epochs: e.few, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			got := h.Last()[e.measure]
			t.Logf("%s %.3f, %d epochs, %.1f s an epoch", e.measure, got, len(h.Epochs), h.Epochs[len(h.Epochs)-1].Seconds)
			if e.lessIsBetter && got > e.want || !e.lessIsBetter && got < e.want {
				t.Errorf("%s is %.3f, want %v", e.measure, got, e.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), "", "", &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != len(examples) {
		t.Errorf("%d lines for %d networks:\n%s", n, len(examples), out.String())
	}
}
