package master_test

import (
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/mathops"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/tensor"
)

// TestNarrowTransfers sends a number between tasks that a bfloat16 cannot hold.
func TestNarrowTransfers(t *testing.T) {
	const text = `
		x = Placeholder() dtype=float
		y = Identity(x) device=/job:ps
	`
	for narrow, want := range map[bool]float32{false: 1.01, true: 1.0078125} {
		config := &pb.ConfigProto{GraphOptions: &pb.GraphOptions{EnableBfloat16Sendrecv: narrow}}
		c := psWorker(t)
		s, err := c.Session(t.Context(), c.Node("worker", 0), text, config)
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, s, testcluster.Feeds{"x:0": tensor.Scalar[float32](1.01)}, "y:0"); got[0] != want {
			t.Errorf("narrow %t: got %v, want %v", narrow, got[0], want)
		}
	}
}
