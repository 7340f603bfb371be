package main

import (
	"context"
	"strings"
	"testing"

	"github.com/weft-ml/weft/server"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		devices int
		soft    bool
		want    string
		err     string
	}{
		{devices: 2, soft: false, want: "2\n"},
		{devices: 1, soft: true, want: "2\n"},
		{devices: 1, soft: false, err: "Cannot assign a device for operation b"},
	} {
		c, err := server.StartCluster(map[string]int{"ps": 1, "worker": 1}, tt.devices)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Shutdown(context.Background()) }()
		var out strings.Builder
		err = run(t.Context(), &out, c.Target("worker", 0), tt.soft)
		switch {
		case tt.err == "" && (err != nil || out.String() != tt.want):
			t.Errorf("%+v: got %q, %v", tt, out.String(), err)
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%+v: got %v", tt, err)
		}
	}
}
