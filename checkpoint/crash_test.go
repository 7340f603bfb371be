package checkpoint

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/tensor"
)

var kills = flag.Int("kills", 25, "how often TestKilledWhileSaving kills")

// TestMain also runs the process that TestKilledWhileSaving kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("WEFT_TEST_SAVE"); dir != "" {
		saveForever(dir, os.Getenv("WEFT_TEST_STEP"))
		return
	}
	os.Exit(m.Run())
}

// saveForever saves checkpoints of step, step+1, … and prints the step after each. The name has the
// step modulo 3, so that checkpoints are also replaced.
func saveForever(dir, from string) {
	step, err := strconv.Atoi(from)
	for ; err == nil; step++ {
		prefix := prefixOf(dir, step)
		var w *Writer
		if w, err = Create(prefix + "_temp/part"); err != nil {
			break
		}
		big := make([]int64, 20_000)
		for i := range big {
			big[i] = int64(step)
		}
		t := tensor.Vector(big...)
		if err = w.Add("step", &t); err != nil {
			break
		}
		if err = w.Close(); err != nil {
			break
		}
		if err = Merge([]string{prefix + "_temp/part"}, prefix, false); err == nil {
			os.Remove(prefix + "_temp")
			fmt.Fprintln(os.Stdout, step)
		}
	}
	fmt.Fprintln(os.Stdout, err)
}

func prefixOf(dir string, step int) string { return filepath.Join(dir, "ck-"+strconv.Itoa(step%3)) }

// TestKilledWhileSaving repeatedly kills a process while it saves. The last checkpoint that it has
// printed must be complete, and the next start must remove all other files.
func TestKilledWhileSaving(t *testing.T) {
	dir := t.TempDir()
	step := 1
	for range *kills {
		last := killed(t, dir, step)
		if last < 0 {
			continue // the process was killed before the first checkpoint
		}
		r, err := Open(prefixOf(dir, last))
		if err != nil {
			t.Fatalf("step %d was saved: %v", last, err)
		}
		x, err := r.Read("step")
		r.Close()
		if err != nil {
			t.Fatalf("step %d was saved: %v", last, err)
		}
		if got := tensor.Values[int64](&x)[0]; got != int64(last) && got != int64(last+3) {
			t.Fatalf("step %d was saved, but the checkpoint holds step %d", last, got)
		}
		step = last + 1
	}
	Sweep(dir)
	for _, name := range list(t, dir) {
		prefix, _, _ := strings.Cut(name, ".")
		if !Exists(filepath.Join(dir, prefix)) {
			t.Errorf("%s is left over", name)
		}
	}
}

// killed runs a process that saves checkpoints from a step on, kills it after a random time, and
// returns the last step that it printed.
func killed(t *testing.T, dir string, step int) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "WEFT_TEST_SAVE="+dir, "WEFT_TEST_STEP="+strconv.Itoa(step))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Duration(10+rand.IntN(60))*time.Millisecond, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	last := -1
	for lines := bufio.NewScanner(out); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Errorf("saving failed: %s", lines.Text())
			break
		}
		last = n
	}
	_ = cmd.Wait() // it was killed
	return last
}

// TestReplace overwrites a checkpoint. The old one must be complete until the new index replaces
// the old index.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "ck")
	for i := range int32(4) {
		write(t, prefix, named{name: "x", t: tensor.Scalar(i)})
		got, err := mustOpen(t, prefix).Read("x")
		if err != nil || tensor.Value[int32](&got) != i {
			t.Errorf("after saving %d the value is %v, %v", i, got.String(), err)
		}
		if names := list(t, dir); len(names) != 2 {
			t.Errorf("the files are %q", names)
		}
	}
	before := list(t, dir)
	w, err := Create(prefix)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Scalar(int32(9))
	if err := w.Add("x", &x); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if after := list(t, dir); strings.Join(after, " ") != strings.Join(before, " ") {
		t.Errorf("an aborted checkpoint left %q", after)
	}
}

// TestNextSaveSweeps creates files that a dead process could have left: the next save removes them.
func TestNextSaveSweeps(t *testing.T) {
	dir := t.TempDir()
	dead, err := fileio.Files{}.Create(filepath.Join(dir, "old"))
	if err != nil {
		t.Fatal(err)
	}
	names := list(t, dir)
	dead.Abort()
	if err := os.WriteFile(filepath.Join(dir, names[0]), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "ck"), named{name: "x", t: tensor.Scalar(true)})
	if names := list(t, dir); len(names) != 2 {
		t.Errorf("the files are %q", names)
	}
}
