package recorder

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// node returns an execution that took a second.
func node(name string) *executor.NodeStats {
	now := time.Now()
	return &executor.NodeStats{
		Node: name, Op: "Op", Depth: 1, Scheduled: now.Add(-3 * time.Second), Start: now.Add(-time.Second), End: now,
		Outputs: []executor.OutputStats{{Bytes: 3}, {Bytes: 4}},
	}
}

func TestRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recorder
		if r.Current() != nil || (*Recorder)(nil).Current() != nil {
			t.Error("something is being recorded")
		}
		(*Recording)(nil).Part(1)()
		(*Recording)(nil).Transfer(Transfer{})
		if err := r.Start(7, time.Minute); err != nil {
			t.Fatal(err)
		}
		rec := r.Current()
		done := rec.Part(5)
		rec.Part(6)
		time.Sleep(4 * time.Second) //nolint:forbidigo // virtual time
		rec.Collector(5, "cpu", nil).Collect(node("a"))
		rec.Collector(5, "cpu:1", nil).Collect(node("a"))
		rec.Transfer(Transfer{Step: 5, Tensor: "x", Bytes: 8, Requested: time.Now().Add(-time.Second), Received: time.Now()})
		rec.Step(Step{ID: 5, Session: "s", Start: time.Now(), End: time.Now(), Code: 3})
		done()
		if err := r.Start(8, time.Minute); status.CodeOf(err) != status.FailedPrecondition {
			t.Errorf("a second recording: %v", err)
		}
		if _, err := r.Stop(8); status.CodeOf(err) != status.NotFound {
			t.Errorf("the end of another recording: %v", err)
		}
		time.Sleep(time.Second) //nolint:forbidigo // virtual time
		out, err := r.Stop(7)
		if err != nil {
			t.Fatal(err)
		}
		rec.Collector(5, "", nil).Collect(node("late"))
		x := out.GetExecutions()
		if len(x) != 2 || x[0].GetReady() != 1e9 || x[0].GetQueued() != 2e9 || x[0].GetTook() != 1e9 || x[0].GetBytes() != 7 || x[0].GetStep() != 5 {
			t.Errorf("the executions are %v", x)
		}
		if n := out.GetNodes(); len(n) != 2 || n[0].GetName() != "a" || n[0].GetDevice() != "cpu" {
			t.Errorf("the nodes are %v", n)
		}
		if p := out.GetParts(); len(p) != 2 || p[0].GetTook() != 4e9 || p[0].GetUnfinished() || p[1].GetTook() != 5e9 || !p[1].GetUnfinished() {
			t.Errorf("the parts are %v", p)
		}
		if s := out.GetSteps(); len(s) != 1 || s[0].GetCode() != 3 || s[0].GetSession() != "s" {
			t.Errorf("the steps are %v", s)
		}
		if tr := out.GetTransfers(); len(tr) != 1 || tr[0].GetRequested() != 3e9 || tr[0].GetReceived() != 4e9 {
			t.Errorf("the transfers are %v", tr)
		}
		if out.GetEnd()-out.GetBegin() != 5e9 {
			t.Errorf("it took %d ns", out.GetEnd()-out.GetBegin())
		}
		if r.Current() != nil {
			t.Error("it has not ended")
		}
		r.Close()
		if err := r.Start(9, time.Minute); status.CodeOf(err) != status.Unavailable {
			t.Errorf("a recording of a closed task: %v", err)
		}
	})
}

// A recording ends at its limit, waits to be fetched, and is dropped.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recorder
		defer r.Close()
		for _, limit := range []time.Duration{0, -1, MaxDuration + 1} {
			if err := r.Start(1, limit); status.CodeOf(err) != status.InvalidArgument {
				t.Errorf("a recording of %v: %v", limit, err)
			}
		}
		if err := r.Start(1, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second + keepTime/2) //nolint:forbidigo // virtual time
		if r.Current() != nil {
			t.Error("it has not ended")
		}
		if out, err := r.Stop(1); err != nil || out.GetEnd()-out.GetBegin() != 1e9 {
			t.Errorf("got %v, %v", out, err)
		}
		if err := r.Start(2, time.Second); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)                     //nolint:forbidigo // virtual time
		if err := r.Start(3, time.Second); err != nil { // replaces one that waits to be fetched
			t.Fatal(err)
		}
		time.Sleep(2*time.Second + keepTime) //nolint:forbidigo // virtual time
		if _, err := r.Stop(3); status.CodeOf(err) != status.NotFound {
			t.Errorf("a recording that was dropped: %v", err)
		}
	})
}

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recorder
		defer r.Close()
		if err := r.Await(t.Context(), 1, 1); status.CodeOf(err) != status.NotFound {
			t.Errorf("a wait without a recording: %v", err)
		}
		if err := r.Start(1, time.Minute); err != nil {
			t.Fatal(err)
		}
		r.Current().Step(Step{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := r.Await(t.Context(), 1, 2); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		r.Current().Step(Step{})
		r.Current().Step(Step{})
		wg.Wait()
		start := time.Now()
		if err := r.Start(1, time.Minute); err == nil {
			t.Error("two recordings")
		}
		if err := r.Await(t.Context(), 1, 100); err != nil || time.Since(start) != time.Minute {
			t.Errorf("got %v after %v, want the end of the recording", err, time.Since(start))
		}
	})
}

// Steps that are not recorded for lack of memory are counted.
func TestStepsWithoutMemory(t *testing.T) {
	var r Recorder
	defer r.Close()
	if err := r.Start(1, time.Minute); err != nil {
		t.Fatal(err)
	}
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1)
	const steps = 10_000
	for range steps {
		r.Current().Step(Step{})
	}
	if err := r.Await(t.Context(), 1, steps); err != nil {
		t.Fatal(err)
	}
	out, err := r.Stop(1)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(out.GetSteps()); n > steps/2 || out.GetLost() != int64(steps-n) {
		t.Errorf("%d steps were recorded, and %d not", n, out.GetLost())
	}
}
