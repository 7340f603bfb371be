package local_test

import (
	"sync"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestStep(t *testing.T) {
	root := op.NewScope()
	x := op.Placeholder(root.Named("x"), tensor.Float32)
	y := op.Relu(root.WithDevice("/cpu:1"), x)
	g, err := root.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	s, err := weft.NewSession("local", g, weft.WithCPUDevices(2))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Run(t.Context(), map[graph.Output]tensor.Tensor{x: tensor.Vector[float32](-1, 2)}, []graph.Output{y}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v := tensor.Values[float32](&got[0]); v[0] != 0 || v[1] != 2 {
		t.Errorf("got %v", v)
	}
	devices, err := s.ListDevices(t.Context())
	if err != nil || len(devices) != 2 || devices[1].Name != "/job:localhost/replica:0/task:0/device:CPU:1" {
		t.Errorf("got devices %v, %v", devices, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestDeviceCountIsChecked(t *testing.T) {
	root := op.NewScope()
	c := op.Const(root, int32(1))
	s, err := weft.NewSession("local", root.Graph(), weft.WithCPUDevices(1<<30))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Run(t.Context(), nil, []graph.Output{c}, nil); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("got error %v", err)
	}
}

// TestStepsInTurns runs different steps of one session from several goroutines. Some of them fail.
// No step may receive the values of another.
func TestStepsInTurns(t *testing.T) {
	root := op.NewScope()
	x, y := op.Placeholder(root.Named("x"), tensor.Float32), op.Placeholder(root.Named("y"), tensor.Float32)
	difference, negation := op.Sub(root, x, y), op.Neg(root, x)
	s, err := weft.NewSession("local", root.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	type feeds = map[graph.Output]tensor.Tensor
	var all sync.WaitGroup
	for who := range 4 {
		all.Go(func() {
			for i := range 50 {
				a, b := float32(who), float32(i)
				both := feeds{x: tensor.Scalar(a), y: tensor.Scalar(b)}
				for _, step := range []struct {
					feeds   feeds
					fetches []graph.Output
					want    []float32
				}{
					{both, []graph.Output{difference}, []float32{a - b}},
					{both, []graph.Output{negation, difference}, []float32{-a, a - b}},
					{feeds{x: tensor.Scalar(b)}, []graph.Output{negation}, []float32{-b}},
					{feeds{x: tensor.Scalar(b)}, []graph.Output{difference}, nil}, // y has no value
					{feeds{y: tensor.Tensor{}}, []graph.Output{negation}, nil},
				} {
					got, err := s.Run(t.Context(), step.feeds, step.fetches, nil)
					if (err != nil) != (step.want == nil) || len(got) != len(step.want) {
						t.Errorf("got %v, %v; want %v", got, err, step.want)
						return
					}
					for j := range got {
						if v := tensor.Value[float32](&got[j]); v != step.want[j] {
							t.Errorf("value %d is %v, want %v", j, v, step.want[j])
						}
						got[j].Release()
					}
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkStep(b *testing.B) {
	root := op.NewScope()
	c := op.Const(root, float32(1))
	s, err := weft.NewSession("local", root.Graph())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	fetches := []graph.Output{c}
	b.Run("run", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Run(b.Context(), nil, fetches, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	callable, err := s.Prepare(b.Context(), weft.Step{Fetches: fetches})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("callable", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := callable.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
