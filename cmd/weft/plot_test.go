package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestPlot passes arguments and the exit status through a program on PATH.
func TestPlot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$@\"\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, plotProgram), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, []string{"PATH=" + dir + ":/bin:/usr/bin"}, "plot", "/tmp/model", "--out", "a b.svg")
	p.expect(t, 3)
	if got := strings.TrimSpace(p.out.String()); got != "--out=a b.svg --values= /tmp/model" {
		t.Errorf("got the arguments %q", got)
	}
	p = startProgram(t, []string{"PATH=" + t.TempDir()}, "plot", "/tmp/model")
	p.expect(t, exitFault)
	if !strings.Contains(p.log.String(), "go install github.com/weft-ml/weft/cmd/weft-plot@latest") {
		t.Errorf("got the error %s", p.log.String())
	}
}
