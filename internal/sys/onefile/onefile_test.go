//go:build gpu && linux && amd64

package onefile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOneProgram builds a program of the kind, and starts it with and without the loader, and where
// there is nothing but the program.
func TestOneProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	command := func(env []string, name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	command([]string{"CGO_ENABLED=0"}, "go", "build", "-tags=gpu", "-ldflags=-E weft_entry", "-o", program, "./testdata/program")
	command(nil, "go", "run", "./nointerp", program)
	run := func(attr *syscall.SysProcAttr, path string, args ...string) string {
		t.Helper()
		cmd := exec.Command(path, args...)
		cmd.SysProcAttr = attr
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s %v: %v", path, args, err)
		}
		return strings.TrimSpace(string(out))
	}
	if got := run(nil, program); got != "program true -1 1" {
		t.Errorf("static: %q", got)
	}
	if got := run(nil, program, "reload", "x"); got != "program false 7 3" {
		t.Errorf("with the loader: %q", got)
	}
	if os.Getuid() != 0 {
		return
	}
	empty := &syscall.SysProcAttr{Chroot: dir}
	if got := run(empty, "/program", "plain"); !strings.HasSuffix(got, " true -1 2") {
		t.Errorf("in an empty root: %q", got)
	}
	if got := run(empty, "/program", "reload"); !strings.HasPrefix(got, "no loader") {
		t.Errorf("without a loader: %q", got)
	}
}
