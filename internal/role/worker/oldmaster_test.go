package worker_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/role/message"
	oldpeer "github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/status"
)

// TestErrorForReceiversOfAnOldMaster has a peer that waits for a tensor of a step that fails. It
// may report the error to the master before this task does, so it gets the master's form of it.
func TestErrorForReceiversOfAnOldMaster(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	g := f.register("s", "feed x\nf = TestFail(x)\nsend z f")
	received := make(chan error)
	go func() {
		_, err := f.RecvTensor(t.Context(), &message.RecvTensorRequest{StepID: 1, Key: f.transfer(cpu, peer, "z")})
		received <- err
	}()
	ctx := oldpeer.NewContext(t.Context(), oldpeer.TF14)
	resp, err := f.RunGraph(ctx, f.request(g, 1, map[string]float32{"x": 1}))
	if err != nil {
		t.Fatal(err)
	}
	const want = "failed\n\t [[Node: f = TestFail["
	expect(t, resp.Err, status.InvalidArgument, want)
	expect(t, <-received, status.InvalidArgument, want)
}
