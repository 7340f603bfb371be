package kernel_test

import (
	"context"
	"testing"

	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/kernel"
)

func TestDetach(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "iterator")
	step := &kernel.Step{
		ID: 7, Context: t.Context(), Cancel: func(error) {}, Rendezvous: rendezvous.New(),
		Resources: kernel.NewResources("step"), Session: "session", NewRendezvous: rendezvous.NewForStep,
	}
	d := step.Detach(ctx)
	again := d.Detach(ctx)
	if d.ID != 7 || d.Session != "session" || d.Context != ctx || d.Cancel != nil {
		t.Errorf("got %+v", d)
	}
	if d.Rendezvous == nil || d.Rendezvous == step.Rendezvous || d.Resources == nil || d.Resources == step.Resources {
		t.Errorf("the detached step shares the rendezvous or the resources: %+v", d)
	}
	if again.Rendezvous == nil || again.Rendezvous == d.Rendezvous {
		t.Error("the second detached step shares the rendezvous of the first")
	}
	if bare := (&kernel.Step{ID: 1}).Detach(ctx); bare.Rendezvous != nil || bare.Resources == nil {
		t.Errorf("got %+v", bare)
	}
}
