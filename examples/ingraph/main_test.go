package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-ml/weft/server"
)

func TestRun(t *testing.T) {
	cl, err := server.StartCluster(map[string]int{"ps": 1, "worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	for mode, want := range map[string]string{
		"async": `^mode : async step : 120 ,test accuracy : (0\.[89]|1\.0)`,
		"sync":  `^mode : sync step : 60 ,test accuracy : (0\.[89]|1\.0)`,
	} {
		var out strings.Builder
		c := config{target: cl.Target("worker", 0), mode: mode, workers: 2, steps: 60, batch: 100, rate: 0.1}
		if err := c.run(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("got %q, want %s", out.String(), want)
		}
	}
	c := config{target: cl.Target("worker", 0), mode: "both", workers: 1}
	if err := c.run(t.Context(), &strings.Builder{}); err == nil {
		t.Error("no error for an unknown mode")
	}
}
