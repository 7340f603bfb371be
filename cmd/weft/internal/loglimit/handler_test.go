package loglimit

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// output is a buffer that the timer of a handler and the test use.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (o *output) Reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Reset()
}

func TestHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out output
		h := New(slog.NewTextHandler(&out, nil), 3)
		log := slog.New(h)
		for range 4 {
			log.Info("a")
			log.With("k", 1).WithGroup("g").Warn("b", "x", 2)
		}
		if got := strings.Count(out.String(), "\n"); got != 3 {
			t.Errorf("got %d lines, want 3:\n%s", got, out.String())
		}
		<-time.After(2 * time.Second) // of the fake clock
		synctest.Wait()
		if !strings.HasSuffix(out.String(), "msg=\"5 lines were left out (3 in one second, set by --max-log-rate)\"\n") {
			t.Errorf("got:\n%s", out.String())
		}
		out.Reset()
		log.Info("c")
		h.Flush()
		if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "msg=c") {
			t.Errorf("got:\n%s", got)
		}
		log = slog.New(New(slog.NewTextHandler(&out, nil), 0))
		out.Reset()
		for range 500 {
			log.Info("d")
		}
		if got := strings.Count(out.String(), "\n"); got != 500 {
			t.Errorf("got %d lines without a limit", got)
		}
	})
}
