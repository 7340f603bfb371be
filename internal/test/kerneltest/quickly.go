package kerneltest

import (
	"testing"
	"time"
)

// Quickly fails the test unless f ends soon without an error. It is for loops that would take hours
// if they went over rows without elements.
func Quickly(t testing.TB, f func() error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("it takes too long")
	}
}
