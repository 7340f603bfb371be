//go:build !race

package parallel

import "testing"

// sync.Pool drops items at random under the race detector.
func TestRunDoesNotAllocate(t *testing.T) {
	setThreads(t, 2)
	var body emptyBody
	if n := testing.AllocsPerRun(1000, func() { Run(100, 10, &body) }); n >= 1 {
		t.Errorf("Run allocates %v times", n)
	}
}
