package stepctx

import (
	"context"
	"testing"
)

func TestProgress(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := Progress{Context: ctx, Each: 8}
	if err := p.Pass(between); err != nil {
		t.Errorf("before the end: %v", err)
	}
	cancel()
	for n := between / p.Each; n > 1; n-- {
		if err := p.Pass(0); err != nil {
			t.Fatalf("%d items early: %v", n, err)
		}
	}
	if err := p.Pass(0); err == nil {
		t.Error("no error after the end")
	}
}
