package main

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// TestClusterCommands runs steps, sessions and top while a step waits for a queue on another task.
func TestClusterCommands(t *testing.T) {
	c, err := server.StartCluster(map[string]int{"ps": 1, "worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root := op.NewScope()
	onPS := root.WithDevice("/job:ps/task:0")
	queue := op.FIFOQueueV2(onPS, []tensor.DType{tensor.Float32})
	next := op.QueueDequeueV2(onPS, queue, []tensor.DType{tensor.Float32})
	target := c.Target("worker", 0)
	s, err := weft.NewSession(target, root.Graph())
	if err != nil {
		t.Fatal(err)
	}
	steps, ended := waitingStep(t, s, next[0], target)
	if st := steps[0]; st.Task != "worker/0" || st.Session == "" || st.ID == 0 || len(st.Waits) == 0 {
		t.Errorf("the step is %+v", st)
	}
	for command, wants := range map[string][]string{
		"steps":    {"STEP", "WAITS FOR", "worker/0", "ps/0: RunGraph (", "FIFOQueueV2"},
		"sessions": {"SESSION", "worker/0", steps[0].Session},
		"top":      {"TASK", "ps/0", "up", "STEP", "ps/0: RunGraph ("},
	} {
		args := []string{command, target}
		if command == "top" {
			args = append(args, "--count=2", "--interval=1ms")
		}
		text := execute(t, args)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("weft %s prints no %q:\n%s", command, want, text)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the step has ended without an element")
	}
}

// TestRunningSteps sorts steps of two masters.
func TestRunningSteps(t *testing.T) {
	step := func(id int64, age time.Duration) weft.StepStatus { return weft.StepStatus{ID: id, Running: age} }
	steps := runningSteps([]weft.TaskStatus{
		{Name: "/job:worker/replica:0/task:0", Sessions: []weft.SessionStatus{{Steps: []weft.StepStatus{step(1, 1), step(2, 3)}}}},
		{Name: "/job:worker/replica:0/task:1", Sessions: []weft.SessionStatus{{Steps: []weft.StepStatus{step(3, 2)}}}},
	})
	if len(steps) != 3 || steps[0].ID != 2 || steps[1].ID != 3 || steps[1].Task != "worker/1" || steps[2].ID != 1 {
		t.Errorf("got %+v", steps)
	}
}

func TestWatchCluster(t *testing.T) {
	calls := 0
	if err := watchCluster(t.Context(), time.Microsecond, 3, func() error { calls++; return nil }); err != nil || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
	failure := errors.New("no")
	if err := watchCluster(t.Context(), time.Hour, 0, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestVersionCommand(t *testing.T) {
	var about aboutProgram
	if err := json.Unmarshal([]byte(execute(t, []string{"version", "-o", "json"})), &about); err != nil {
		t.Fatal(err)
	}
	if about.Version == "" || about.Compiler == "" || about.Ops < 500 || about.Protocol == "" {
		t.Errorf("got %+v", about)
	}
	if text := execute(t, []string{"version"}); !strings.Contains(text, "operations: ") {
		t.Errorf("got %s", text)
	}
}

// TestStatusOfFailures prints the root cause of steps that have failed.
func TestStatusOfFailures(t *testing.T) {
	c, err := server.StartCluster(map[string]int{"ps": 1, "worker": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	root := op.NewScope()
	bad := op.CheckNumericsV2(root.WithDevice("/job:ps/task:0"), op.Placeholder(root, tensor.Float32), "the loss")
	s, err := weft.NewSession(c.Target("worker", 0), root.Graph())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 2 {
		feeds := weft.Feeds{bad.Node.Input(0): tensor.Scalar(float32(math.NaN()))}
		if _, err := s.Fetch(t.Context(), feeds, bad); err == nil {
			t.Fatal("the step does not fail")
		}
	}
	text := execute(t, []string{"status", c.Target("ps", 0)})
	if want := regexp.MustCompile(`\nINVALID_ARGUMENT on ps/0, \d+s ago, step \d+ of session [0-9a-f]{8}… at worker/0, 2 times:\n  the loss : Tensor had NaN values\n`); !want.MatchString(text) {
		t.Errorf("got\n%s", text)
	}
}

// waitingStep starts a step that fetches an output, and waits until the task at target reports it.
// It returns the steps of the task, and the channel that receives the error of the step.
func waitingStep(t *testing.T, s *weft.Session, fetch op.Output, target string) ([]runningStep, <-chan error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := s.Fetch(t.Context(), nil, fetch)
		ended <- err
	}()
	var steps []runningStep
	for len(steps) == 0 {
		if err := json.Unmarshal([]byte(execute(t, []string{"steps", "-o", "json", target})), &steps); err != nil {
			t.Fatal(err)
		}
	}
	return steps, ended
}
