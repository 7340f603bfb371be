package worker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestRequestsToRunThatFail(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	g := f.register("s", addOne+"f = TestFail(y)\n")
	bad := f.register("s", "feed x\nsend z x\nfetch y x")
	ok := map[string]float32{"x": 1}
	for _, tt := range []struct {
		name string
		req  func() *message.RunGraphRequest
		code status.Code
		text string
	}{
		{"failing node", func() *message.RunGraphRequest { return f.request(g, 1, ok, "y") }, status.InvalidArgument, "failed\n\t [[{{node f}}]]"},
		{"unknown graph", func() *message.RunGraphRequest { return f.request("77", 2, ok) }, status.Aborted, "Graph handle is not found: 77"},
		{"unknown fetch", func() *message.RunGraphRequest { return f.request(bad, 3, ok, "zz") }, status.Internal, "Failed to fetch outputs for step 3. (Original error message: "},
		{"bad fetch", func() *message.RunGraphRequest {
			req := f.request(bad, 4, ok)
			req.RecvKeys = []string{"foo"}
			return req
		}, status.Internal, "Failed to fetch outputs for step 4. (Original error message: Invalid  rendezvous key: foo)"},
		{"bad feed", func() *message.RunGraphRequest {
			req := f.request(bad, 5, nil)
			req.Send = []message.NamedTensor{{Name: "foo", Tensor: tensor.Scalar(float32(1))}}
			return req
		}, status.InvalidArgument, "Invalid  rendezvous key: foo"},
		{"no tensor", func() *message.RunGraphRequest {
			req := f.request(bad, 6, nil)
			req.Send = []message.NamedTensor{{Name: f.key("x")}}
			return req
		}, status.InvalidArgument, "Invalid TensorProto for feed value 0"},
		{"wrong type", func() *message.RunGraphRequest {
			req := f.request(bad, 7, nil)
			req.Send = []message.NamedTensor{{Name: f.key("x"), Tensor: tensor.Scalar(int32(1))}}
			return req
		}, status.Internal, "does not match declared output type float"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp, err := f.RunGraph(t.Context(), tt.req())
			if err != nil || resp.Err == nil {
				t.Fatalf("got %v, %v; want the error in the body", resp, err)
			}
			expect(t, resp.Err, tt.code, tt.text)
			req := tt.req()
			if _, err := f.CleanupGraph(t.Context(), &pb.CleanupGraphRequest{StepId: req.StepID}); err != nil {
				t.Error(err)
			}
			req.StoreErrorsInBody = false
			_, err = f.RunGraph(t.Context(), req)
			expect(t, err, tt.code, tt.text)
		})
	}
}

func TestRepeatedRequestsAreAborted(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	g := f.register("s", addOne)
	for i, want := range []status.Code{status.OK, status.Aborted} {
		req := f.request(g, int64(i), map[string]float32{"x": 1}, "y")
		req.RequestID = 99
		_, err := f.run(req)
		expect(t, err, want)
	}
	_, err := f.RecvTensor(t.Context(), &message.RecvTensorRequest{StepID: 5, Key: f.transfer(cpu, peer, "z"), RequestID: 99})
	expect(t, err, status.Aborted, "The same RecvTensor (GrpcWorker) request was received twice.")
}

func TestDeadFetch(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	g := f.register("s", `
		feed x
		never = Const() value=bool[]{false}
		s = Switch(x, never)
		fetch dead s:1
		fetch live s`)
	if got, err := f.run(f.request(g, 1, map[string]float32{"x": 3}, "live")); err != nil || got[0] != 3 {
		t.Errorf("got %v, %v; want 3", got, err)
	}
	_, err := f.run(f.request(g, 2, map[string]float32{"x": 3}, "dead"))
	expect(t, err, status.Internal, "Failed to fetch outputs for step 2.", "The tensor returned for "+f.key("dead")+" was not valid.")
}

func TestCancelledRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.session("s")
		g := f.register("s", "feed x\ny = TestBlock(x)\nsend z y")
		ctx, cancel := context.WithCancel(t.Context())
		received := make(chan error)
		go func() {
			_, err := f.RecvTensor(t.Context(), &message.RecvTensorRequest{StepID: 1, Key: f.transfer(cpu, peer, "z")})
			received <- err
		}()
		ran := make(chan error)
		go func() {
			resp, err := f.RunGraph(ctx, f.request(g, 1, map[string]float32{"x": 1}))
			if err == nil {
				err = resp.Err
			}
			ran <- err
		}()
		synctest.Wait()
		cancel()
		for name, err := range map[string]error{"run": <-ran, "receiver": <-received} {
			expect(t, err, status.Cancelled)
			if !status.IsDerived(err) {
				t.Errorf("the error of the %s does not follow from another: %v", name, err)
			}
		}
	})
}

func TestRunEndsWithItsSessionAndItsStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for name, end := range map[string]func(){
			"session": func() { _, _ = f.DeleteWorkerSession(t.Context(), &pb.DeleteWorkerSessionRequest{SessionHandle: "s"}) },
			"step":    func() { _, _ = f.CleanupGraph(t.Context(), &pb.CleanupGraphRequest{StepId: 1}) },
		} {
			f.session("s")
			g := f.register("s", "feed x\ny = TestBlock(x)")
			ran := make(chan error)
			go func() {
				_, err := f.run(f.request(g, 1, map[string]float32{"x": 1}))
				ran <- err
			}()
			synctest.Wait()
			end()
			err := <-ran
			expect(t, err, status.Aborted)
			if !status.IsDerived(err) || f.NumSteps() != 0 {
				t.Errorf("end of the %s: %v, %d steps left", name, err, f.NumSteps())
			}
		}
	})
}

func TestOneStepInTwoSessions(t *testing.T) {
	f := newFixture(t)
	f.session("s")
	f.session("other")
	g := f.register("s", addOne)
	h := f.register("other", addOne)
	if _, err := f.run(f.request(g, 1, map[string]float32{"x": 1}, "y")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.run(f.request(g, 1, map[string]float32{"x": 1}, "y")); err != nil {
		t.Errorf("a second run in the step: %v", err)
	}
	req := f.request(h, 1, map[string]float32{"x": 1}, "y")
	req.Session = "other"
	_, err := f.run(req)
	expect(t, err, status.Internal, "Step 1 belongs to session s, not to other.")
}

func TestPartialRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.session("s")
		g := f.register("s", "feed a\nfeed b\nfeed c\nab = TestAdd(a, b)\nabc = TestAdd(ab, c)\nfetch ab ab\nfetch abc abc")
		piece := func(last bool, feeds map[string]float32, fetches ...string) ([]float32, error) {
			req := f.request(g, 1, feeds, fetches...)
			req.IsPartial, req.IsLastPartial = true, last
			return f.run(req)
		}
		if got, err := piece(false, map[string]float32{"a": 1}); err != nil || len(got) > 0 {
			t.Fatalf("got %v, %v", got, err)
		}
		waiting := make(chan float32)
		go func() {
			got, err := piece(false, nil, "ab")
			if err != nil {
				t.Error(err)
			}
			waiting <- got[0]
		}()
		synctest.Wait()
		if _, err := piece(false, map[string]float32{"b": 2}); err != nil {
			t.Fatal(err)
		}
		if got := <-waiting; got != 3 {
			t.Errorf("ab is %v, want 3", got)
		}
		if got, err := piece(true, map[string]float32{"c": 10}, "abc"); err != nil || got[0] != 13 {
			t.Errorf("abc is %v, %v; want 13", got, err)
		}
	})
}

func TestPartialRunThatFailsOrIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.session("s")
		g := f.register("s", "feed a\nfeed b\nf = TestFail(a)\nblocked = TestBlock(b)\nfetch f f\nfetch never blocked")
		piece := func(ctx context.Context, step int64, feeds map[string]float32, fetches ...string) error {
			req := f.request(g, step, feeds, fetches...)
			req.IsPartial = true
			resp, err := f.RunGraph(ctx, req)
			if err == nil && resp.Err != nil {
				return resp.Err
			}
			return err
		}
		expect(t, piece(t.Context(), 1, map[string]float32{"a": 1}, "f"), status.InvalidArgument, "failed\n\t [[{{node f}}]]")
		expect(t, piece(t.Context(), 1, map[string]float32{"b": 1}), status.InvalidArgument, "failed")
		if err := piece(t.Context(), 2, map[string]float32{"b": 1}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		expect(t, piece(ctx, 2, nil, "never"), status.DeadlineExceeded)
		_, err := f.RunGraph(t.Context(), func() *message.RunGraphRequest {
			req := f.request(g, 2, nil)
			req.IsPartial, req.IsLastPartial = true, true
			return req
		}())
		if err != nil {
			t.Error(err)
		}
	})
}
