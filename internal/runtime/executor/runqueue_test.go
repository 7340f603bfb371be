package executor

import "testing"

// TestRunQueue adds tasks to a queue that is never empty and takes them at both ends.
func TestRunQueue(t *testing.T) {
	var q runQueue
	var want []*task
	put := func() {
		want = append(want, new(task))
		if got := q.put(want[len(want)-1]); got != len(want) {
			t.Fatalf("%d tasks are queued, want %d", got, len(want))
		}
	}
	put()
	for range 1000 {
		put()
		put()
		if q.takeOldest() != want[0] {
			t.Fatal("the task is not the oldest")
		}
		if q.takeNewest() != want[2] {
			t.Fatal("the task is not the newest")
		}
		want = want[1:2]
	}
	if cap(q.tasks) > 16 {
		t.Errorf("the queue has grown to %d", cap(q.tasks))
	}
	if q.takeNewest() != want[0] || q.takeNewest() != nil || q.takeOldest() != nil || q.waiting.Load() != 0 {
		t.Error("the last task was not returned, or was returned twice")
	}
}
