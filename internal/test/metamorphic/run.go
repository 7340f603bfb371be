package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-ml/weft/tensor"
)

// stepTimeout is the time after which a step is considered to hang.
const stepTimeout = time.Minute

// A Session runs the steps of one program.
type Session interface {
	// Init runs nodes before the first step.
	Init(ctx context.Context, nodes []string) error
	// Step feeds outputs and returns others, in their order.
	Step(ctx context.Context, feeds map[string]tensor.Tensor, fetches []string) ([]tensor.Tensor, error)
	Close() error
}

// Verify describes how the results of a program on some devices differ from those of the
// interpreter.
func Verify(p *Program, devices []string, open func(context.Context, *Graph) (Session, error)) error {
	got, err := run(p, devices, open)
	if err != nil {
		return err
	}
	for step, want := range Interpret(p) {
		for i := range want {
			if !Equal(&got[step][i], &want[i]) {
				return fmt.Errorf("step %d, result %d: got %v, want %v", step, i, &got[step][i], &want[i])
			}
		}
	}
	return nil
}

// run returns the results of the steps of a program.
func run(p *Program, devices []string, open func(context.Context, *Graph) (Session, error)) (out [][]tensor.Tensor, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	g, err := Build(p, Options{Devices: devices})
	if err != nil {
		return nil, err
	}
	s, err := open(ctx, g)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if len(g.Init) > 0 {
		if err := s.Init(ctx, g.Init); err != nil {
			return nil, err
		}
	}
	for step := range p.Steps() {
		feeds := map[string]tensor.Tensor{}
		for i, f := range p.Feeds {
			feeds[g.Feeds[i]] = f.Values[step]
		}
		got, err := s.Step(ctx, feeds, g.Fetches)
		if err != nil {
			return out, fmt.Errorf("step %d: %w", step, err)
		}
		out = append(out, got)
	}
	return out, nil
}
