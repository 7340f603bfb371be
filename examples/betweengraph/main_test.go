package main

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/examples/task"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/train"
)

func TestRun(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"ps": 1, "worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	spec, dir := cl.Spec(), t.TempDir()
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() {
			var out strings.Builder
			flags := task.Flags{
				PSHosts: spec["ps"][0], WorkerHosts: spec["worker"][0] + "," + spec["worker"][1], Job: "worker", Index: i,
				Target: cl.Target("worker", i),
			}
			c := config{task: flags, hidden: 30, steps: 300, batch: 50, rate: 0.002, logDir: dir}
			if err := c.run(t.Context(), &out); err != nil {
				t.Error(err)
				return
			}
			m := regexp.MustCompile(fmt.Sprintf(`job : worker/%d local steps : \d+ in [0-9.]+ s ,test accuracy : ([0-9.]+)`, i)).FindStringSubmatch(out.String())
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
	var step int
	latest, err := train.LatestCheckpoint(dir)
	if _, scanErr := fmt.Sscanf(filepath.Base(latest), "model.ckpt-%d", &step); err != nil || scanErr != nil || step < 299 {
		t.Errorf("the latest checkpoint is %q: %v, %v", latest, err, scanErr)
	}
}

// TestServer starts and stops the server of a task in the process.
func TestServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := config{task: task.Flags{PSHosts: "127.0.0.1:0", WorkerHosts: "127.0.0.1:1", Job: "ps"}}
	if err := c.run(ctx, &strings.Builder{}); err != nil {
		t.Error(err)
	}
}
