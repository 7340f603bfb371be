package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/server"
)

func TestRun(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"ps": 1, "worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	spec := cl.Spec()
	var running sync.WaitGroup
	for task := range 2 {
		running.Go(func() {
			var out strings.Builder
			c := config{
				psHosts: spec["ps"][0], workerHosts: spec["worker"][0] + "," + spec["worker"][1], job: "worker", task: task,
				target: cl.Target("worker", task), hidden: 30, steps: 300, batch: 50, rate: 0.002, logDir: t.TempDir(),
			}
			if err := c.run(t.Context(), &out); err != nil {
				t.Error(err)
				return
			}
			m := regexp.MustCompile(fmt.Sprintf(`job : worker/%d local steps : \d+ in [0-9.]+ s ,test accuracy : ([0-9.]+)`, task)).FindStringSubmatch(out.String())
			if m == nil {
				t.Errorf("got %q", out.String())
				return
			}
			if accuracy, err := strconv.ParseFloat(m[1], 64); err != nil || accuracy < 0.85 {
				t.Errorf("accuracy %v, %v", accuracy, err)
			}
		})
	}
	running.Wait()
}

// TestServer starts the server of a task in the program itself, and stops it.
func TestServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := config{psHosts: "127.0.0.1:0", workerHosts: "127.0.0.1:1", job: "ps"}
	if err := c.run(ctx, &strings.Builder{}); err != nil {
		t.Error(err)
	}
}
