package sdnotify

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
)

// listen returns what is sent to a socket that the environment names.
func listen(t *testing.T, name string) func() string {
	t.Helper()
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return func() string {
		b := make([]byte, 1000)
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

func TestStates(t *testing.T) {
	names := map[string]string{"path": filepath.Join(t.TempDir(), "s")}
	if runtime.GOOS == "linux" {
		names["abstract"] = "@weft-sdnotify-" + strconv.Itoa(os.Getpid())
	}
	for kind, name := range names {
		t.Run(kind, func(t *testing.T) {
			received := listen(t, name)
			t.Setenv("NOTIFY_SOCKET", name)
			n, err := New()
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			n.Ready("serves\nhere")
			n.Stopping("drains")
			for _, want := range []string{"READY=1\nSTATUS=serves here", "STOPPING=1\nSTATUS=drains"} {
				if got := received(); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func TestNoManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n, err := New()
	if n != nil || err != nil {
		t.Fatalf("%v, %v", n, err)
	}
	n.Ready("x")
	n.Watch(nil)()
	n.Close()
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	if _, err := New(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no socket: %v", err)
	}
}

// The check fails every second time, and only the others are signs of life.
func TestWatch(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	received := listen(t, name)
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	checks := 0
	stop := n.Watch(func(context.Context) error {
		if checks++; checks%2 == 0 {
			return errors.New("stuck")
		}
		return nil
	})
	for range 3 {
		if got := received(); got != "WATCHDOG=1" {
			t.Errorf("got %q", got)
		}
	}
	stop()
	if checks < 5 {
		t.Errorf("3 signs of life after %d checks", checks)
	}
	t.Setenv("WATCHDOG_PID", "1")
	n.Watch(func(context.Context) error {
		t.Error("checked for another process")
		return nil
	})()
}
