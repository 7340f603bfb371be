package main

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
)

// lines is a buffer that a program writes while the test reads it.
type lines struct {
	changed chan struct{} // gets a value after a write

	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestTensorFlowServer(t *testing.T) {
	t.Setenv("TF_CPP_MIN_LOG_LEVEL", "0")
	for _, program := range []string{"/usr/bin/grpc_tensorflow_server", "weft"} {
		args := []string{"--verbose", "true", "--gpu_memory_fraction=0.5", "--cluster_spec=ps|127.0.0.1:0,worker|127.0.0.1:2223;127.0.0.1:2224", "--job_name=ps", "--task_id=0"}
		if program == "weft" {
			args = append([]string{tensorFlowServer}, args...)
		}
		ctx, cancel := context.WithCancel(t.Context())
		log := lines{changed: make(chan struct{}, 1)}
		cmd := rootFor(program, nil)
		cmd.SetArgs(args)
		cmd.SetErr(&log)
		cmd.SetOut(&log)
		ended := make(chan error, 1)
		go func() { ended <- cmd.ExecuteContext(ctx) }()
		for !strings.Contains(log.String(), "Started server") {
			select {
			case err := <-ended:
				t.Fatalf("%s ended: %v\n%s", program, err, &log)
			case <-log.changed:
			case <-time.After(time.Minute):
				t.Fatalf("%s does not start:\n%s", program, &log)
			}
		}
		logPlacement(t, regexp.MustCompile(`grpc://\S+`).FindString(log.String()))
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for _, want := range []string{
			`(?m)^\S+ \S+: I \S+grpc_tensorflow_server.cc:\d+\] Peer ps 1 \{127.0.0.1:0\}$`,
			`(?m)^\S+ \S+: I \S+grpc_tensorflow_server.cc:\d+\] Peer worker 2 \{127.0.0.1:2223, 127.0.0.1:2224\}$`,
			`(?m)^\S+ \S+: I \S+grpc_server_lib.cc:\d+\] Started server with target: grpc://localhost:[1-9]\d*$`,
			`(?m)^\S+ \S+: I \S+grpc_channel.cc:\d+\] Initialize GrpcChannelCache for job ps -> \{0 -> localhost:[1-9]\d*\}$`,
			`(?m)^\S+ \S+: I \S+grpc_channel.cc:\d+\] Initialize GrpcChannelCache for job worker -> \{0 -> 127.0.0.1:2223, 1 -> 127.0.0.1:2224\}$`,
			`(?m)^Added job named "ps"$`,
			`(?m)^  Added task "127.0.0.1:2224" to job "worker"$`,
			`(?m)^\S+ level=INFO msg="created a session" task=/job:ps/replica:0/task:0 session=[0-9a-f]{8} peer=127.0.0.1 nodes=1 tasks=1 devices=1$`,
			`(?m)^\S+ level=DEBUG msg="registered a partition of a graph" task=/job:ps/replica:0/task:0 session=[0-9a-f]{8} graph=\S+ nodes=\d+$`,
			`(?m)^\S+ level=INFO msg="closed a session" task=/job:ps/replica:0/task:0 session=[0-9a-f]{8}$`,
			`(?m)^here: \(Const\): /job:ps/replica:0/task:0/device:CPU:0$`,
		} {
			if !regexp.MustCompile(want).MatchString(log.String()) {
				t.Errorf("%s: no line like %s in\n%s", program, want, &log)
			}
		}
	}
}

// logPlacement runs a step of a session that logs the placement of its nodes.
func logPlacement(t *testing.T, target string) {
	t.Helper()
	s := op.NewScope().WithDevice("/job:ps")
	here := op.Const(s.Named("here"), int32(1))
	g, err := s.Finalize()
	if err != nil {
		t.Fatal(err)
	}
	// the workers are not started
	sess, err := weft.NewSession(target, g, weft.WithPlacementLog(), weft.WithDeviceFilters("/job:ps"))
	if err != nil {
		t.Fatal(err)
	}
	defer sess.Close()
	if _, err := sess.Run(t.Context(), nil, []op.Output{here}, nil); err != nil {
		t.Error(err)
	}
}

func TestTensorFlowServerUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--cluster_spec=ps|127.0.0.1:0 --job_name=worker", `ERROR: Job name "worker" does not appear in the cluster spec`},
		{"--cluster_spec=ps|127.0.0.1:0 --job_name=ps --task_id=1", `ERROR: Task index 1 is invalid (job "ps" contains 1 tasks`},
		{"--cluster_spec=ps --job_name=ps", "ERROR: "},
		{"--cluster_spec=ps|127.0.0.1:0 --job_name=ps --cpu_devices=0", "ERROR: --cpu_devices must be at least 1"},
	} {
		var log bytes.Buffer
		cmd := rootFor(tensorFlowServer, nil)
		cmd.SetArgs(strings.Fields(tt.args))
		cmd.SetErr(&log)
		err := cmd.ExecuteContext(t.Context())
		if exitStatus(err) != exitUsage || !strings.Contains(log.String(), tt.want) || !strings.Contains(log.String(), "Usage:") {
			t.Errorf("%s: got %v and\n%s", tt.args, err, &log)
		}
	}
}
