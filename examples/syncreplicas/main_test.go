package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/examples/task"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// TestRun trains with two workers and compares the two exported models.
func TestRun(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"ps": 2, "worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	spec := cl.Spec()
	dir := t.TempDir()
	var running sync.WaitGroup
	for i := range 2 {
		running.Go(func() {
			var out strings.Builder
			flags := task.Flags{
				PSHosts: spec["ps"][0] + "," + spec["ps"][1], WorkerHosts: spec["worker"][0] + "," + spec["worker"][1], Job: "worker",
				Index: i, Target: cl.Target("worker", i),
			}
			c := config{task: flags, lastStep: 30, saveSteps: 20, rate: 0.01, modelDir: dir}
			if err := c.run(t.Context(), &out); err != nil {
				t.Errorf("worker %d: %v", i, err)
			} else if i == 0 && !strings.HasSuffix(out.String(), "ckpt, saved_at_end, saved_later\n") {
				t.Errorf("got %q", out.String())
			}
		})
	}
	running.Wait()
	if t.Failed() {
		return
	}
	atEnd, later := read(t, filepath.Join(dir, "saved_at_end")), read(t, filepath.Join(dir, "saved_later"))
	for name, v := range atEnd {
		if got := later[name]; got != v {
			t.Errorf("%s is %.60s in one model and %.60s in the other", name, v, got)
		}
	}
}

// read returns the values of the variables in a model as text.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	m, err := savedmodel.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.MetaGraph(savedmodel.TagServe); err != nil {
		t.Error(err)
	}
	r, err := checkpoint.Open(m.Variables())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	values := map[string]string{}
	for _, name := range []string{"hid_w", "sm_b", "sm_b/Adam", "global_step"} {
		v, err := r.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if v.DType() == tensor.Float32 && name == "hid_w" && v.Shape()[1] != 100 {
			t.Errorf("%s has shape %v", name, v.Shape())
		}
		values[name] = v.String()
	}
	return values
}
