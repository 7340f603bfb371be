package main

import (
	"context"
	"strings"
	"testing"

	"github.com/weft-ml/weft/server"
)

func TestRun(t *testing.T) {
	c, err := server.StartCluster(map[string]int{"local": 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Shutdown(context.Background()) }()
	var out strings.Builder
	if err := run(t.Context(), &out, c.Target("local", 0), "/cpu:1"); err != nil {
		t.Fatal(err)
	}
	want := "/job:local/replica:0/task:0/device:CPU:0\n/job:local/replica:0/task:0/device:CPU:1\n[[22 28] [49 64]]\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if err := run(t.Context(), &out, c.Target("local", 0), "/cpu:7"); err == nil || !strings.Contains(err.Error(), "Cannot assign a device") {
		t.Errorf("on a device that does not exist: %v", err)
	}
}
