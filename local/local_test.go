package local_test

import (
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
	callable, err := s.MakeCallable(b.Context(), nil, fetches, nil)
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
