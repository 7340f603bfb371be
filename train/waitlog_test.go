package train

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitLog waits for 80 seconds, first for a task and then for variables.
func TestWaitLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := startWaitLog(slog.New(slog.NewTextHandler(&out, nil)), "a session on grpc://worker1:2222")
		<-time.After(15 * time.Second)
		w.setReason("variables " + abbreviate("a, b, c, d, e, f, g"))
		<-time.After(65 * time.Second)
		w.stop()
		for _, want := range []string{
			`missing="a session on grpc://worker1:2222" waited=10s`,
			`missing="variables a, b, c, d, e and 2 more" waited=40s`,
			`missing="variables a, b, c, d, e and 2 more" waited=1m10s`,
		} {
			if strings.Count(out.String(), want) != 1 {
				t.Errorf("no line with %s in\n%s", want, out.String())
			}
		}
		if n := strings.Count(out.String(), "\n"); n != 3 {
			t.Errorf("%d lines", n)
		}
	})
}
