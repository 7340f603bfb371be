package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestLogOfTask starts a task whose log is no terminal, changes its level, reads its lines from
// another process, and closes a session.
func TestLogOfTask(t *testing.T) {
	p := startProgram(t, nil, "server", "--cluster-spec=ps|127.0.0.1:0", "--job-name=ps")
	target := p.await(t, &p.out, `ready: \S+ at (grpc://\S+), `)[1]
	root := op.NewScope()
	queue := op.FIFOQueueV2(root, []tensor.DType{tensor.Float32})
	next := op.QueueDequeueV2(root, queue, []tensor.DType{tensor.Float32})
	s, err := weft.NewSession(target, root.Graph())
	if err != nil {
		t.Fatal(err)
	}
	steps, ended := waitingStep(t, s, next[0], target)
	if got := execute(t, []string{"log-level", target, "debug"}); got != target+": debug, was info\n" {
		t.Errorf("got %s", got)
	}
	if got := execute(t, []string{"log-level", "--all", target}); !strings.HasSuffix(got, ": debug\n") {
		t.Errorf("got %s", got)
	}
	got := execute(t, []string{"sessions", "close", target, steps[0].Session})
	if want := "closed session " + steps[0].Session + "… at ps/0, with 1 running steps\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := <-ended; status.CodeOf(err) != status.Cancelled || !strings.Contains(err.Error(), "an operator closed its session") {
		t.Errorf("the step has ended with %v", err)
	}
	_ = s.Close() // the session has gone
	text := execute(t, []string{"logs", target})
	for _, want := range []string{
		`INFO  ps/0: created a session session=` + steps[0].Session + ` peer=127.0.0.1 nodes=2 tasks=1 devices=1`,
		`INFO  ps/0: the level of the log changes from=info to=debug by=""`,
		`DEBUG ps/0: dropped a session session=` + steps[0].Session,
		`INFO  ps/0: closed a session for an operator session=` + steps[0].Session,
	} {
		if !regexp.MustCompile(`(?m)^\S+ \S+ ` + regexp.QuoteMeta(want) + "$").MatchString(text) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	var lines []weft.LogLine
	if err := json.Unmarshal([]byte(execute(t, []string{"logs", "-o", "json", "--level=info", "--lines=2", target})), &lines); err != nil || len(lines) != 2 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	p.signal(t, syscall.SIGTERM)
	p.expect(t, 143)
	// The process itself has written the same lines as JSON.
	for i, line := range strings.Split(strings.TrimSpace(p.log.String()), "\n") {
		var v struct{ Time, Level, Msg, Task string }
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Time == "" || v.Level == "" || v.Msg == "" || v.Task != "/job:ps/replica:0/task:0" {
			t.Errorf("line %d: %v: %s", i, err, line)
		}
	}
}

// TestCloseSessionsArguments checks what weft sessions close refuses.
func TestCloseSessionsArguments(t *testing.T) {
	for _, args := range [][]string{
		{"sessions", "close", "grpc://127.0.0.1:1"},
		{"sessions", "close", "grpc://127.0.0.1:1", "abc"},
		{"sessions", "close", "grpc://127.0.0.1:1", "01234567", "--all-of=client a"},
		{"log-level", "grpc://127.0.0.1:1", "loud"},
		{"logs", "grpc://127.0.0.1:1", "--lines=0"},
	} {
		cmd := newRoot()
		cmd.SetArgs(args)
		if err := cmd.ExecuteContext(t.Context()); exitStatus(err) != exitUsage {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestLogFormats(t *testing.T) {
	var f logFormat
	for _, text := range []string{"auto", "text", "json"} {
		if err := f.Set(text); err != nil || f.String() != text {
			t.Errorf("%s: %v, %v", text, f, err)
		}
	}
	if f.Set("xml") == nil {
		t.Error("xml is a format")
	}
	if got := logAuto.of(&bytes.Buffer{}); got != logJSON {
		t.Errorf("a buffer gets %s", got)
	}
}
