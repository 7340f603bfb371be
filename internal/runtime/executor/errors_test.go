package executor_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func TestErrors(t *testing.T) {
	tests := []struct {
		op       string
		attrs    opdef.Attrs
		code     status.Code
		contains string
	}{
		{"Fail", nil, status.InvalidArgument, "failed\n\t [[{{node bad}}]]"},
		{"Fail", opdef.Attrs{"code": int64(status.Unavailable)}, status.Internal, "replaced by InternalError"},
		{"FailDistributed", opdef.Attrs{"code": int64(status.Unavailable)}, status.Unavailable, "failed"},
		{"OutOfMemory", nil, status.ResourceExhausted, "\nHint: If you want"},
		{"Fail", opdef.Attrs{"code": int64(status.ResourceExhausted)}, status.ResourceExhausted, "failed\n\t [[{{node bad}}]]"},
		{"Panic", nil, status.Internal, "at the disco"},
		{"PanicAsync", nil, status.Internal, "at the disco"},
		{"NoOutput", nil, status.Internal, "Missing 0-th output from {{node bad}}"},
		{"WrongType", nil, status.Internal, "Output 0 of type float does not match declared output type int64 for node {{node bad}}"},
	}
	for _, tt := range tests {
		b := newBuilder(t)
		bad := b.add("bad", tt.op, tt.attrs, b.number(1)).Out(0)
		b.ret(0, b.sum(bad, b.number(1)))
		e := b.compile()
		for i := range 4 {
			if i == 2 && strings.Contains(e.Fuse(1, 64), "bad") == (tt.op == "PanicAsync" || tt.op == "FailDistributed") {
				t.Errorf("%s %v: regions\n%s", tt.op, tt.attrs, e.Regions())
			}
			_, err := call(t, e, 1)
			if status.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.contains) ||
				strings.Count(err.Error(), "{{node bad}}") != 1 {
				t.Errorf("%s %v: got %v: %v", tt.op, tt.attrs, status.CodeOf(err), err)
			}
			if strings.Contains(err.Error(), "OOM happens") != (tt.op == "OutOfMemory") {
				t.Errorf("%s %v: hint about memory: %v", tt.op, tt.attrs, err)
			}
		}
	}
}

func TestPanicIsLogged(t *testing.T) {
	b := newBuilder(t)
	b.add("bad", "Panic", nil, b.number(1))
	var log bytes.Buffer
	e, err := executor.New(b.Graph, executor.Config{
		Device: testDevice, NewKernel: newKernel, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(newStep(t, nil), executor.RunOptions{}); status.CodeOf(err) != status.Internal {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), "ops_test.go") || !strings.Contains(log.String(), "node=bad") {
		t.Errorf("log: %s", log.String())
	}
}

// TestFirstErrorWins runs a kernel that fails and others that fail because of it.
func TestFirstErrorWins(t *testing.T) {
	b := newBuilder(t)
	for range 5 {
		b.add("", "Wait", nil, b.number(1))
	}
	slow := b.add("", "AddLater", nil, b.number(1), b.number(1)).Out(0)
	b.add("bad", "Fail", nil, slow)
	_, err := call(t, b.compile(), 0)
	if status.CodeOf(err) != status.InvalidArgument || status.IsDerived(err) {
		t.Errorf("got %v, derived %t", err, status.IsDerived(err))
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	b := newBuilder(t)
	b.add("", "Wait", nil, b.number(1))
	e := b.compile()
	step := newStep(t, nil)
	result := make(chan error)
	go func() { result <- e.Run(step, executor.RunOptions{}) }()
	step.Cancel(status.Cancelledf("enough"))
	if err := <-result; status.CodeOf(err) != status.Cancelled || !status.IsDerived(err) {
		t.Errorf("got %v, derived %t", err, status.IsDerived(err))
	}
}

func TestEndlessLoopIsCancelled(t *testing.T) {
	b := newBuilder(t)
	b.countTo("f", 10, b.number(0), b.number(1), b.number(0))
	e := b.compile()
	step := newStep(t, nil)
	result := make(chan error)
	go func() { result <- e.Run(step, executor.RunOptions{}) }()
	step.Cancel(status.DeadlineExceededf("too late"))
	if err := <-result; status.CodeOf(err) != status.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

func TestCancelledBeforeTheStart(t *testing.T) {
	b := newBuilder(t)
	b.add("", "Panic", nil, b.number(1))
	step := newStep(t, nil)
	step.Cancel(status.Cancelledf("enough"))
	if err := b.compile().Run(step, executor.RunOptions{}); status.CodeOf(err) != status.Cancelled {
		t.Errorf("got %v", err)
	}
}

const (
	alice = "/job:j/replica:0/task:0/device:CPU:0"
	bob   = "/job:j/replica:0/task:0/device:CPU:1"
)
