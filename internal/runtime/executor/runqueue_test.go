package executor

import "testing"

// TestJobs puts jobs into a queue that is never empty, and takes them at both ends.
func TestJobs(t *testing.T) {
	var j jobs
	var want []*task
	put := func() {
		want = append(want, new(task))
		if got := j.put(want[len(want)-1]); got != len(want) {
			t.Fatalf("%d jobs wait, want %d", got, len(want))
		}
	}
	put()
	for range 1000 {
		put()
		put()
		if j.oldest() != want[0] {
			t.Fatal("the job is not the oldest")
		}
		if j.newest() != want[2] {
			t.Fatal("the job is not the newest")
		}
		want = want[1:2]
	}
	if cap(j.queue) > 16 {
		t.Errorf("the queue has grown to %d", cap(j.queue))
	}
	if j.newest() != want[0] || j.newest() != nil || j.oldest() != nil || j.waiting.Load() != 0 {
		t.Error("the last job is not the last")
	}
}
