package main

import (
	"context"
	"strings"
	"testing"

	"github.com/weft-ml/weft/server"
)

func TestRun(t *testing.T) {
	c, err := server.StartCluster(map[string]int{"local": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Shutdown(context.Background()) }()
	var out strings.Builder
	if err := run(t.Context(), &out, c.Target("local", 0)); err != nil {
		t.Fatal(err)
	}
	if out.String() != "Hello, distributed TensorFlow!\n" {
		t.Errorf("got %q", out.String())
	}
}
