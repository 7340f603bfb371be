package train

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/status"
)

// TestRollJudges shows entries of worker 1 to worker 0, and checks what worker 0 makes of them.
func TestRollJudges(t *testing.T) {
	const run, earlier = 7, 5
	agreed := []int64{1, run, 3}
	for name, tt := range map[string]struct {
		first, last entry
		agreed      []int64
		silent      time.Duration
		want        string // "" for no failure
		code        status.Code
	}{
		"alive":              {last: entry{Run: run, Beat: 4, State: entryAlive}, agreed: agreed},
		"silent":             {last: entry{Run: run, Beat: 4, State: entryAlive}, agreed: agreed, silent: time.Minute, want: "silent for 1m0s", code: status.Unavailable},
		"not begun":          {silent: time.Minute},
		"failed earlier":     {first: entry{Run: earlier, State: entryFailed}, last: entry{Run: earlier, State: entryFailed}, silent: time.Minute},
		"silent at start":    {last: entry{Run: run, Beat: 1, State: entryWaiting}, silent: time.Minute, want: "worker 1 was lost", code: status.Unavailable},
		"failed at start":    {last: entry{Run: run, State: entryFailed, Code: status.DataLoss, Text: "no disk", Root: 1}, want: "worker 1 has failed: no disk", code: status.DataLoss},
		"failed":             {last: entry{Run: run, State: entryFailed, Code: status.DataLoss, Text: "no disk", Root: 1}, agreed: agreed, want: "worker 1 has failed: no disk", code: status.DataLoss},
		"another has failed": {last: entry{Run: run, State: entryFailed, Code: status.DataLoss, Text: "worker 2 has failed", Root: 2}, agreed: agreed, want: "worker 2 has failed", code: status.DataLoss},
		"lost a task":        {last: entry{Run: run, State: entryFailed, Code: status.Unavailable, Text: "task 2", Root: 1}, agreed: agreed, want: "worker 1 has lost another task: task 2", code: status.Unavailable},
		"done":               {last: entry{Run: run, State: entryDone}, agreed: agreed, silent: time.Minute},
		"next call":          {last: entry{Run: 9, State: entryWaiting, PriorRun: run, PriorState: entryDone}, agreed: agreed},
		"started again":      {last: entry{Run: 9, State: entryWaiting, PriorRun: run, PriorState: entryAlive}, agreed: agreed, want: "worker 1 was lost, and has been started again", code: status.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			r := &roll{own: 0, workers: 3, led: make(chan int64, 1), agreed: tt.agreed, seen: []sighting{
				{}, {entry: tt.first, first: tt.first, changed: now}, {entry: entry{Run: 3, State: entryAlive}, changed: now},
			}}
			entries := []entry{{}, tt.last, {Run: 3, Beat: 1, State: entryAlive}}
			_, err := r.look(now, entries)
			if tt.silent > 0 {
				if err != nil {
					t.Errorf("got %v at once", err)
				}
				entries[2].Beat++
				_, err = r.look(now.Add(tt.silent), entries)
			}
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || status.CodeOf(err) != tt.code):
				t.Errorf("got %v: %v, want %v: %q", status.CodeOf(err), err, tt.code, tt.want)
			}
		})
	}
}

// TestRollNamesOwnTask checks the error of a step that the task of a worker has cancelled: it names
// the task, keeps its code, and is not changed if it names the task already.
func TestRollNamesOwnTask(t *testing.T) {
	r := &roll{own: 2}
	err := r.naming(status.Cancelledf("saving: the step was cancelled"))
	if want := "/job:worker/replica:0/task:2"; !strings.Contains(err.Error(), want) || status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v: %v, want CANCELLED that names %s", status.CodeOf(err), err, want)
	}
	if again := r.naming(err); again != err { //nolint:errorlint // the same error, not one that wraps it
		t.Errorf("got %v, want %v", again, err)
	}
}
