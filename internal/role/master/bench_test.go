package master_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/tensor"
)

// BenchmarkStep runs a step with a feed and a fetch on the master's own task.
func BenchmarkStep(b *testing.B) {
	c := testcluster.New(b, testcluster.Options{Jobs: map[string]int{"worker": 1}, Kernels: testcluster.Kernels()})
	s, err := c.Session(b.Context(), c.Node("worker", 0), `
		x = Placeholder() dtype=float
		y = TestAdd(x, x)`, nil)
	if err != nil {
		b.Fatal(err)
	}
	req := &message.RunStepRequest{
		Session: s.Handle, Feeds: []message.NamedTensor{{Name: "x:0", Tensor: tensor.Scalar(float32(1))}}, Fetches: []string{"y:0"},
	}
	b.ReportAllocs()
	for b.Loop() {
		resp, err := s.Node.Master.RunStep(b.Context(), req)
		if err != nil {
			b.Fatal(err)
		}
		resp.Tensors[0].Tensor.Release()
	}
}
