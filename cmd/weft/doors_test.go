package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
)

// checkDoors returns what weft server --check prints for flags.
func checkDoors(t *testing.T, flags ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := newServer()
	root := &cobra.Command{Use: "weft", SilenceUsage: true}
	root.AddCommand(cmd)
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"server", "--check", "--job-name=ps", "--cluster-spec=ps|127.0.0.1:0"}, flags...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v\n%s", flags, err, &out)
	}
	return out.String()
}

// Every flag that opens something adds a line to the output of --check, and one that closes it
// takes the line away.
func TestDoors(t *testing.T) {
	dir := t.TempDir()
	plain := checkDoors(t)
	for _, want := range []string{"any user of this machine", "no --file-root", "no --sandbox", "--ops all", "no --max-session-memory"} {
		if !strings.Contains(plain, want) {
			t.Errorf("no flags: %q is not in\n%s", want, plain)
		}
	}
	for flag, want := range map[string]string{
		"--max-sessions=0":                  "--max-sessions 0: no limit",
		"--idle-timeout=0":                  "--idle-timeout 0s: no limit",
		"--memory-limit=-1":                 "--memory-limit -1: no limit",
		"--metrics-address=127.0.0.1:0":     "the metrics need no certificate",
		"--http-address=127.0.0.1:0":        "every process that reaches it",
		"--max-connections-per-principal=0": "no limit",
	} {
		if strings.Contains(plain, want) {
			t.Errorf("%q without %s", want, flag)
		}
		if got := checkDoors(t, flag); !strings.Contains(got, want) {
			t.Errorf("%s: %q is not in\n%s", flag, want, got)
		}
	}
	open := checkDoors(t, "--insecure", "--listen=0.0.0.0:0")
	if !strings.Contains(open, "every host that reaches this task can run graphs here") {
		t.Errorf("--insecure:\n%s", open)
	}
	if strings.Contains(open, "no --file-root") || !strings.Contains(open, "an address proves nothing") {
		t.Errorf("--insecure:\n%s", open)
	}
	for flag, gone := range map[string]string{
		"--file-root=data=" + dir: "no --file-root", "--ops=training": "--ops all", "--max-tenant-memory=1GiB": "no --max-session-memory",
	} {
		if got := checkDoors(t, flag); strings.Contains(got, gone) {
			t.Errorf("%s: %q is in\n%s", flag, gone, got)
		}
	}
}

// countLines is an io.Writer that counts.
type countLines struct{ n atomic.Int32 }

func (c *countLines) Write(b []byte) (int, error) {
	c.n.Add(1)
	return len(b), nil
}

func TestWarnInsecure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out countLines
		stop := warnInsecure(context.Background(), slog.New(slog.NewTextHandler(&out, nil)), insecureInterval)
		<-time.After(3*time.Hour + time.Minute)
		stop()
		if n := out.n.Load(); n != 4 {
			t.Errorf("%d warnings in three hours, want 4", n)
		}
	})
}
