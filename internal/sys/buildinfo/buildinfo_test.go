package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	recorded := &debug.BuildInfo{
		GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	plain := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "(devel)"}}
	for _, test := range []struct {
		info            *debug.BuildInfo
		stamp           string
		short, complete string
	}{
		{recorded, "", "v1.2.3", "v1.2.3 (commit 0123456789ab of 2026-01-02T03:04:05Z, modified, go1.26)"},
		{plain, "fedcba98 2026-01-01T00:00:00Z", "devel-fedcba98", "devel-fedcba98 (commit fedcba98 of 2026-01-01T00:00:00Z, go1.26)"},
		{plain, "fedcba98 2026-01-01T00:00:00Z modified", "devel-fedcba98", "devel-fedcba98 (commit fedcba98 of 2026-01-01T00:00:00Z, modified, go1.26)"},
		{plain, "", "devel", "devel (commit unknown, go1.26)"},
		{nil, "", "devel", "devel (commit unknown, unknown Go version)"},
	} {
		b := describe(test.info, test.stamp)
		if b.Version != test.short || b.String() != test.complete {
			t.Errorf("stamp %q: got %s and %s, want %s", test.stamp, b.Version, b, test.complete)
		}
	}
}
