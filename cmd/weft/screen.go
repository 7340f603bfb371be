package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/train"
)

// A screen shows the progress of a demo. On a terminal it redraws one line per worker; elsewhere it
// prints plain lines.
type screen struct {
	out  io.Writer
	live bool // out is a terminal

	mu    sync.Mutex
	lines []string // current line of each worker; guarded by mu
	drawn bool     // the lines are on the terminal, above the cursor; guarded by mu
}

func newScreen(out io.Writer, workers int) *screen {
	f, ok := out.(*os.File)
	return &screen{out: out, live: ok && term.IsTerminal(int(f.Fd())), lines: make([]string, workers)}
}

// line prints a line. The lines of the workers are drawn again below it.
func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = false
	fmt.Fprintf(s.out, format+"\n", args...)
}

// progress shows the progress of a worker.
func (s *screen) progress(worker int, step int64, loss, accuracy float32, rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live {
		fmt.Fprintf(s.out, "job : worker/%d step : %d ,training accuracy : %.2f\n", worker, step, accuracy)
		return
	}
	s.lines[worker] = fmt.Sprintf("  worker/%d  step %6d  loss %7.4f  accuracy %.3f  %7.0f steps/s", worker, step, loss, accuracy, rate)
	if s.drawn {
		fmt.Fprintf(s.out, "\x1b[%dA", len(s.lines))
	}
	s.drawn = true
	for _, l := range s.lines {
		fmt.Fprintf(s.out, "\x1b[2K%s\n", l)
	}
}

// devices lists the devices of a session.
func (s *screen) devices(ctx context.Context, sess train.Session) error {
	lister, ok := sess.(interface {
		ListDevices(ctx context.Context) ([]weft.Device, error)
	})
	if !ok {
		return nil
	}
	devs, err := lister.ListDevices(ctx)
	names := make([]string, len(devs))
	for i, d := range devs {
		names[i] = d.Name
	}
	s.line("devices: %s", strings.Join(names, ", "))
	return err
}

// interrupted shows how to continue.
func (s *screen) interrupted(latest string, f *demoFlags) {
	s.line("interrupted; saved as %s", latest)
	s.line("to continue: %s", f.again(f.steps))
}

// finish shows the result and further commands.
func (s *screen) finish(accuracy float32, took time.Duration, latest string, f *demoFlags) {
	s.line("test accuracy %.4f after %d steps in %.1f s", accuracy, f.steps, took.Seconds())
	s.line("")
	s.line("look: weft checkpoint ls %s", latest)
	s.line("      weft events ls %s       or: tensorboard --logdir=%s", f.dir, f.dir)
	s.line("      weft saved-model show %s", f.modelDir())
	s.line("      weft serve %s       the model over HTTP and gRPC", fileio.Dir(f.modelDir()))
	s.line("")
	s.line("next: %s   continue from the checkpoint", f.again(2*f.steps))
	s.line("      weft demo --sync                synchronous training, with averaged gradients")
	s.line("      weft demo --hidden=512          a larger network")
	s.line("      weft demo --data=DIR            the original MNIST files")
	s.line("      weft demo --servers-only        a cluster for your own programs, from Python or Go")
}

// connect shows how to use the cluster from Python.
func (s *screen) connect(spec cluster.Spec) {
	s.line("")
	s.line("import tensorflow.compat.v1 as tf")
	s.line("tf.disable_v2_behavior()")
	s.line("with tf.device(%q):", "/job:ps/task:0")
	s.line("    a = tf.constant(2.0)")
	s.line("with tf.Session(%q) as sess:", "grpc://"+spec["worker"][0])
	s.line("    print(sess.run(a * 3.0))")
	s.line("")
	s.line("cluster: %s", spec)
	s.line("press Ctrl-C to stop")
}
