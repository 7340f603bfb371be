package master_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

// TestPlansAreKeptUpToANumber runs more kinds of steps than a session keeps plans for.
func TestPlansAreKeptUpToANumber(t *testing.T) {
	const kept, more = 1024, 20
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		var text strings.Builder
		text.WriteString(one)
		for i := range kept + more {
			fmt.Fprintf(&text, "n%d = TestAdd(a, a) device=/job:ps\n", i)
		}
		s := open(t, c, text.String())
		for i := range kept + more {
			if _, err := s.Run(t.Context(), nil, nil, fmt.Sprintf("n%d", i)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Run(t.Context(), nil, nil, "n0"); err != nil { // stays
				t.Fatal(err)
			}
		}
		synctest.Wait()
		calls := c.Calls()
		if n := testcluster.Count(calls, "RegisterGraph"); n != kept+more {
			t.Errorf("%d graphs were registered, want %d", n, kept+more)
		}
		if n := testcluster.Count(calls, "DeregisterGraph"); n != more {
			t.Errorf("%d graphs were dropped, want %d", n, more)
		}
		if _, err := s.Run(t.Context(), nil, nil, "n1"); err != nil {
			t.Errorf("a step whose plan was dropped: %v", err)
		}
	})
}

// TestPlanIsUsedWhileItIsDropped releases a callable while it runs.
func TestPlanIsUsedWhileItIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		s := open(t, c, pieces)
		handle := makeCallable(t, s, callableOf("ab:0", "a:0", "b:0"))
		release := make(chan struct{})
		c.Intercept(testcluster.Hold("RunGraph", "ps", 0, release))
		done := make(chan error)
		go func() {
			_, err := runCallable(t, s, handle, 1, 2)
			done <- err
		}()
		synctest.Wait()
		releaseCallable(t, s, handle)
		synctest.Wait()
		close(release)
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := testcluster.Count(c.Calls(), "DeregisterGraph"); n != 1 {
			t.Errorf("%d graphs were dropped on other tasks, want 1", n)
		}
	})
}

// TestPartsOfAPlanThatFailsAreDropped makes one of two tasks reject its partition.
func TestPartsOfAPlanThatFailsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := psWorker(t)
		s := open(t, c, sum)
		c.Intercept(testcluster.Fail("RegisterGraph", "ps", 0, status.Internalf("no")))
		_, err := s.Run(t.Context(), testcluster.Feeds{"x:0": scalar(1)}, []string{"z:0"})
		expect(t, err, status.Internal, "no")
		synctest.Wait()
		if n := testcluster.Count(c.Calls(), "DeregisterGraph"); n != 1 {
			t.Errorf("%d graphs were dropped on other tasks, want 1", n)
		}
	})
}
