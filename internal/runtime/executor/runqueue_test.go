package executor

import "testing"

// TestJobs puts jobs into a queue that is never empty, and takes them at both ends.
func TestJobs(t *testing.T) {
	var q runQueue
	var want []*task
	put := func() {
		want = append(want, new(task))
		if got := q.put(want[len(want)-1]); got != len(want) {
			t.Fatalf("%d jobs wait, want %d", got, len(want))
		}
	}
	put()
	for range 1000 {
		put()
		put()
		if q.takeOldest() != want[0] {
			t.Fatal("the job is not the oldest")
		}
		if q.takeNewest() != want[2] {
			t.Fatal("the job is not the newest")
		}
		want = want[1:2]
	}
	if cap(q.tasks) > 16 {
		t.Errorf("the queue has grown to %d", cap(q.tasks))
	}
	if q.takeNewest() != want[0] || q.takeNewest() != nil || q.takeOldest() != nil || q.waiting.Load() != 0 {
		t.Error("the last job is not the last")
	}
}
