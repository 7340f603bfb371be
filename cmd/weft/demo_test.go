package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/train"
)

// watched is an output that calls a function with each write.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	see  func(line string)
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	w.text.Write(b)
	w.mu.Unlock()
	if w.see != nil {
		w.see(string(b))
	}
	return len(b), nil
}

// TestDemo interrupts a demo, continues it to the end, and checks its files.
func TestDemo(t *testing.T) {
	cache := t.TempDir()
	for _, synchronous := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", synchronous), func(t *testing.T) {
			f := demoFlags{cache: cache, dir: t.TempDir(), sync: synchronous, steps: 1e9, batch: 20, hidden: 10, rate: 0.5}
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			out := &watched{see: func(line string) {
				var step int
				if _, err := fmt.Sscanf(line, "job : worker/0 step : %d", &step); err == nil && step >= 50 {
					interrupt()
				}
			}}
			if err := f.run(ctx, newScreen(out, demoWorkers)); err != nil {
				t.Fatal(err)
			}
			saved, err := train.LatestCheckpoint(f.dir)
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("--dir=%s --steps=1000000000", f.dir); !strings.Contains(out.text.String(), want) || saved == "" {
				t.Errorf("saved %q and printed %q", saved, out.text.String())
			}
			var step int
			if _, err := fmt.Sscanf(filepath.Base(saved), "model.ckpt-%d", &step); err != nil || step < 50 {
				t.Errorf("saved step %d, %v", step, err)
			}
			f.steps = step + 20
			out = &watched{}
			if err := f.run(t.Context(), newScreen(out, demoWorkers)); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"continuing from " + saved + "\n", "test accuracy 0.", f.modelDir() + "\n"} {
				if !strings.Contains(out.text.String(), want) {
					t.Errorf("no %q in %q", want, out.text.String())
				}
			}
			if !savedmodel.IsModel(f.modelDir()) {
				t.Error("there is no model")
			}
			if files, err := summary.Files(f.dir); err != nil || len(files) != 2 {
				t.Errorf("event files %q, %v", files, err)
			}
			if entries, err := os.ReadDir(filepath.Join(f.dir, "model")); err != nil || len(entries) != 1 {
				t.Errorf("models %v, %v", entries, err)
			}
		})
	}
}

// TestDemoContinues checks the command that continues an interrupted demo.
func TestDemoContinues(t *testing.T) {
	cmd := newDemo()
	if err := cmd.ParseFlags([]string{"--steps=5", "--sync", "--hidden", "20", "--dir=x", "--rate=0.25"}); err != nil {
		t.Fatal(err)
	}
	f := demoFlags{dir: "/x", others: given(cmd, "dir", "steps")}
	if got, want := f.again(5), "weft demo --dir=/x --steps=5 --hidden=20 --rate=0.25 --sync"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
