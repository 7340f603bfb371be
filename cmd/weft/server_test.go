package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const serverDefText = `cluster { job { name: "ps" tasks { key: 0 value: "127.0.0.1:0" } } } job_name: "ps" protocol: "PROTOCOL"`

// TestServerOfParent starts a server as another program does: with a definition on standard input,
// and with the process to end with.
func TestServerOfParent(t *testing.T) {
	t.Setenv("TF_CPP_MIN_LOG_LEVEL", "0")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, log := lines{changed: make(chan struct{}, 1)}, lines{changed: make(chan struct{}, 1)}
	cmd := newRoot()
	cmd.SetArgs(strings.Fields("server --server-def=- --log-format=text --grace=0s --gpu_memory_fraction=0.5 --parent=" + parentID()))
	cmd.SetIn(strings.NewReader(strings.ReplaceAll(serverDefText, "PROTOCOL", "grpc")))
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	started := regexp.MustCompile(`(?m)^\S+ \S+: I \S+/grpc_server_lib.cc:\d+\] Started server with target: grpc://localhost:([1-9]\d*)$`)
	for !started.MatchString(log.String()) {
		select {
		case err := <-ended:
			t.Fatalf("the server ended: %v\n%s", err, &log)
		case <-log.changed:
		case <-time.After(time.Minute):
			t.Fatalf("the server does not start:\n%s", &log)
		}
	}
	port := started.FindStringSubmatch(log.String())[1]
	ready := regexp.MustCompile(`^weft \S+ ready: /job:ps/replica:0/task:0 at grpc://127.0.0.1:` + port + `, 1 CPU device\(s\)\n$`)
	if !ready.MatchString(out.String()) {
		t.Errorf("standard output is %q", &out)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServerTellsParentWhyItFails(t *testing.T) {
	for _, tt := range []struct{ protocol, parent, want string }{
		{"grpc+verbs", parentID(), `protocol "grpc+verbs"`},
		{"grpc", "1000000000", "--parent=1000000000: the parent of this process is " + parentID()},
	} {
		var out bytes.Buffer
		cmd := newRoot()
		cmd.SetArgs([]string{"server", "--server-def=-", "--parent=" + tt.parent})
		cmd.SetIn(strings.NewReader(strings.ReplaceAll(serverDefText, "PROTOCOL", tt.protocol)))
		cmd.SetOut(&out)
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(out.String(), " failed: "+err.Error()+"\n") {
			t.Errorf("got %v and %q, want %q", err, &out, tt.want)
		}
	}
}

func TestLogLevelOfEnvironment(t *testing.T) {
	for level, want := range map[string]string{"": "here", "0": "here", "1": "", "3": "", "x": "here"} {
		t.Setenv("TF_CPP_MIN_LOG_LEVEL", level)
		var log bytes.Buffer
		logLine(&log, "place.cc:1", "here")
		if !strings.Contains(log.String(), want) || (want == "") != (log.Len() == 0) {
			t.Errorf("level %q: %q", level, &log)
		}
	}
}

func parentID() string { return strconv.Itoa(os.Getppid()) }

func TestTracesVariable(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	got := execute(t, []string{"server", "--cluster-spec=ps|127.0.0.1:0", "--job-name=ps"})
	if want := "weft: OTEL_TRACES_EXPORTER=zipkin: Weft has the exporters otlp and none\nexit status 64\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestListenUnix replaces the socket of a process that was killed, and no other file.
func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	first, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v for a socket in use", err)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) // as if the process was killed
	first.Close()
	second, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v for a file", err)
	}
}
