package train

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
)

// TestDataOnLostWorker restarts the task that reads the data within an epoch: the new session
// continues after the batches that were used.
func TestDataOnLostWorker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.txt")
	rows := make([]int32, 23)
	text := ""
	for i := range rows {
		rows[i] = int32(i)
		text += fmt.Sprintln(i)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	inMemory, err := data.FromSlices(rows, rows)
	if err != nil {
		t.Fatal(err)
	}
	lines := data.TextLines(path).MapOps(1, func(s *op.Scope, line []op.Output) []op.Output {
		n := op.StringToNumber(s, line[0])
		return []op.Output{n, op.Square(s, n)}
	})
	for name, set := range map[string]*data.Dataset{
		"rows":  inMemory.Shuffle(9, 2).Batch(4),
		"lines": lines.Shuffle(9, 2).Batch(4),
		"cache": lines.Shuffle(5, 1).Cache().Shuffle(9, 2).Batch(4),
	} {
		t.Run(name, func(t *testing.T) { readWithLoss(t, set) })
	}
}

// readWithLoss reads two epochs on a task that is restarted after two batches of the second one.
func readWithLoss(t *testing.T, set *data.Dataset) {
	cl, err := server.StartCluster(map[string]int{"worker": 1, "data": 1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cl.Shutdown(context.Background()) }()
	s := op.NewScope()
	w, err := newOnWorker(s.WithDevice("/job:data/task:0"), set)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMonitoredSession(t.Context(), cl.Target("worker", 0), s, MonitoredOptions{Chief: true, Hooks: []SessionRunHook{w}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	fetches := append(slices.Clone(w.outputs()), w.fetches()...)
	for epoch := range 2 {
		var got, want []string
		var sizes, rest []int
		for u, err := range w.epoch(t.Context(), m, epoch) {
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.Run(t.Context(), nil, fetches, nil)
			if err != nil {
				t.Fatal(err)
			}
			u = w.fetched(u, out[2:])
			got, sizes = append(got, fmt.Sprint(out[0].Go(), out[1].Go(), u.more)), append(sizes, u.size)
			if epoch == 1 && len(got) == 2 {
				restart(t, cl, "data")
			}
		}
		for u, err := range lookahead(set.Batches(t.Context(), epoch), true) {
			if err != nil {
				t.Fatal(err)
			}
			want, rest = append(want, fmt.Sprint(u.batch[0].Go(), u.batch[1].Go(), u.more)), append(rest, u.size)
		}
		if !slices.Equal(got, want) || !slices.Equal(sizes, rest) {
			t.Errorf("epoch %d: the worker reads %q %v, the program %q %v", epoch, got, sizes, want, rest)
		}
	}
	w.release(t.Context(), m)
}

// restart replaces the server of the task 0 of a job.
func restart(t *testing.T, cl *server.Cluster, job string) {
	t.Helper()
	if err := cl.Server(job, 0).Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(cluster.ServerDef{Cluster: cl.Spec(), Job: job})
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
}
