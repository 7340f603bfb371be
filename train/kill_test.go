package train_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

var kills = flag.Int("kills", 20, "number of processes that TestKilledWhileSaving kills")

const killedDir = "WEFT_TEST_SAVE"

// TestMain also runs the process that TestKilledWhileSaving kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killedDir); dir != "" {
		fmt.Fprintln(os.Stdout, saveForever(context.Background(), dir))
		return
	}
	os.Exit(m.Run())
}

// counted is a graph with variables whose elements all hold the number of the step.
type counted struct {
	scope *op.Scope
	v     *train.Variable
	add   *graph.Node
	init  *graph.Node
	saver *train.Saver
}

func newCounted(parts int) *counted {
	c := &counted{scope: op.NewScope()}
	for i := range parts {
		s := c.scope.WithDevice(fmt.Sprintf("/device:CPU:%d", i))
		c.v = train.NewVariable(s, fmt.Sprintf("v%d", i), tensor.Shape{10_000}, tensor.Int64, train.Zeros)
		c.add = c.v.AssignAdd(s.WithControlDependencies(c.add), op.Fill(s, op.Const(s, []int32{10_000}), op.Const(s, int64(1))))
	}
	c.init = train.VariablesInitializer(c.scope)
	c.saver = train.NewSaver(c.scope, train.SaverOptions{MaxToKeep: 2, Sharded: true})
	return c
}

// saveForever continues from the latest checkpoint, saves a checkpoint after each step, and prints
// its prefix.
func saveForever(ctx context.Context, dir string) error {
	c := newCounted(2)
	g, err := c.scope.Finalize()
	if err != nil {
		return err
	}
	sess, err := weft.NewSession("local", g, weft.WithCPUDevices(2))
	if err != nil {
		return err
	}
	defer sess.Close()
	latest, err := train.LatestCheckpoint(dir)
	if err != nil {
		return err
	}
	if latest != "" {
		err = c.saver.Restore(ctx, sess, latest)
	} else {
		_, err = sess.Run(ctx, nil, nil, []*graph.Node{c.init})
	}
	for err == nil {
		var out []tensor.Tensor
		if _, err = sess.Run(ctx, nil, nil, []*graph.Node{c.add}); err != nil {
			break
		}
		if out, err = sess.Run(ctx, nil, []op.Output{c.v.Value}, nil); err != nil {
			break
		}
		var prefix string
		if prefix, err = c.saver.Save(ctx, sess, filepath.Join(dir, "ck"), tensor.Values[int64](&out[0])[0]); err == nil {
			fmt.Fprintln(os.Stdout, prefix)
		}
	}
	return err
}

// TestKilledWhileSaving repeatedly kills a process while it saves. Each time the last checkpoint
// that the process has printed, or a later one, must be complete, and the next start must remove
// all other files. Run it with -kills=200 for a thorough search.
func TestKilledWhileSaving(t *testing.T) {
	dir := t.TempDir()
	last := ""
	for i := range *kills {
		if reported := killWhileSaving(t, dir, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[i%2]); reported != "" {
			last = reported
		}
		if last != "" {
			checkCounted(t, dir, last)
		}
	}
	c := newCounted(2)
	if err := c.saver.Recover(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	kept, err := c.saver.LastCheckpoints(t.Context())
	if err != nil || len(kept) == 0 || len(kept) > 2 {
		t.Fatalf("kept %q, %v", kept, err)
	}
	mine := regexp.MustCompile(`^(checkpoint|ck-[0-9]+\.(index|meta|data-0000[0-9]-of-0000[0-9]))$`)
	count := 0
	for _, name := range names(t, dir) {
		if !mine.MatchString(name) {
			t.Errorf("%s is left over", name)
		}
		if filepath.Ext(name) == ".index" {
			count++
		}
	}
	if count != len(kept) {
		t.Errorf("there are %d checkpoints: %q, and %q are kept", count, names(t, dir), kept)
	}
}

// checkCounted checks that the latest checkpoint is complete and is not older than the last one
// that was printed.
func checkCounted(t *testing.T, dir, reported string) {
	t.Helper()
	latest := latestIn(t, dir)
	var step, least int64
	if _, err := fmt.Sscanf(filepath.Base(latest), "ck-%d", &step); err != nil {
		t.Fatalf("the latest is %q: %v", latest, err)
	}
	if _, err := fmt.Sscanf(filepath.Base(reported), "ck-%d", &least); err != nil {
		t.Fatal(err)
	}
	if step < least {
		t.Fatalf("%s was reported, and the latest is %s", reported, latest)
	}
	r, err := checkpoint.Open(latest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, name := range []string{"v0", "v1"} {
		v, err := r.Read(name)
		if err != nil {
			t.Fatalf("%s: %v", latest, err)
		}
		for _, x := range tensor.Values[int64](&v) {
			if x != step {
				t.Fatalf("%s has the value %d", latest, x)
			}
		}
	}
}

// killWhileSaving runs a process that saves, ends it by a signal after a random time, and returns
// the last checkpoint that it printed.
func killWhileSaving(t *testing.T, dir string, s syscall.Signal) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), killedDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := ""
	timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Signal(s) })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if filepath.Dir(lines.Text()) != dir {
			t.Errorf("saving failed: %s", lines.Text())
			break
		}
		if last == "" { // the process has started: kill it within one of the next saves
			timer.Reset(time.Duration(rand.IntN(30_000)) * time.Microsecond)
		}
		last = lines.Text()
	}
	timer.Stop()
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	return last
}
