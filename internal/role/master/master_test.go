package master_test

import (
	"strings"
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/array"
	_ "github.com/weft-ml/weft/internal/kernels/comm"
	_ "github.com/weft-ml/weft/internal/kernels/control"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// psWorker starts one parameter server and two workers.
func psWorker(t testing.TB) *testcluster.Cluster {
	t.Helper()
	return testcluster.New(t, testcluster.Options{Jobs: map[string]int{"ps": 1, "worker": 2}, Kernels: testcluster.Kernels()})
}

// open makes a session on the first worker.
func open(t testing.TB, c *testcluster.Cluster, text string) *testcluster.Session {
	t.Helper()
	return openWith(t, c, text, nil)
}

func openWith(t testing.TB, c *testcluster.Cluster, text string, config *pb.ConfigProto) *testcluster.Session {
	t.Helper()
	s, err := c.Session(t.Context(), c.Node("worker", 0), text, config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func run(t testing.TB, s *testcluster.Session, feeds testcluster.Feeds, fetches ...string) []float32 {
	t.Helper()
	got, err := s.Run(t.Context(), feeds, fetches)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// expect checks the code and parts of the text of an error.
func expect(t testing.TB, err error, code status.Code, texts ...string) {
	t.Helper()
	if status.CodeOf(err) != code {
		t.Errorf("got %v: %v, want %v", status.CodeOf(err), err, code)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %q, want %q in it", err, text)
		}
	}
}

func scalar(v float32) tensor.Tensor { return tensor.Scalar(v) }
