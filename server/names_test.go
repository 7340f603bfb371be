package server

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
)

// logText is a log that a test reads while servers write it.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestSpecificationsThatDiffer runs sessions between tasks whose cluster specifications differ.
// Some of the differences are mistakes, others are legitimate.
func TestSpecificationsThatDiffer(t *testing.T) {
	const (
		otherName    = "a task has another name in its own cluster specification"
		called       = "a master calls this task by another name"
		unknown      = "the task of a master is not in this task's cluster specification"
		otherAddress = "a task has other addresses in its cluster specification"
	)
	for _, tt := range []struct {
		name  string
		specs func(w, p string) (worker, ps cluster.Spec)
		psJob string // job of the other task in its own specification
		want  []string
	}{
		{"equal", func(w, p string) (workers, others cluster.Spec) {
			spec := cluster.Spec{"worker": cluster.Dense(w), "ps": cluster.Dense(p)}
			return spec, spec
		}, "ps", nil},
		{"a subset", func(w, p string) (workers, others cluster.Spec) {
			return cluster.Spec{"worker": cluster.Dense(w), "ps": cluster.Dense(p)},
				cluster.Spec{"worker": cluster.Dense(w), "ps": cluster.Dense(p), "chief": cluster.Dense("127.0.0.1:1")}
		}, "ps", nil},
		{"another job", func(w, p string) (workers, others cluster.Spec) {
			return cluster.Spec{"worker": cluster.Dense(w), "ps": cluster.Dense(p)},
				cluster.Spec{"worker": cluster.Dense(w), "parameters": cluster.Dense(p)}
		}, "parameters", []string{otherName, called}},
		{"one task under two names", func(w, p string) (workers, others cluster.Spec) {
			spec := cluster.Spec{"worker": cluster.Dense(w), "ps": cluster.Dense(p, "[::ffff:"+strings.Replace(p, ":", "]:", 1))}
			return spec, spec
		}, "ps", []string{otherName, called}},
		{"a master that the task does not know", func(w, p string) (workers, others cluster.Spec) {
			return cluster.Spec{"worker": cluster.Dense(w), "ps": cluster.Dense(p)}, cluster.Spec{"ps": cluster.Dense(p)}
		}, "ps", []string{unknown}},
		{"another address", func(w, p string) (workers, others cluster.Spec) {
			return cluster.Spec{"worker": cluster.Dense(w), "ps": cluster.Dense(p)},
				cluster.Spec{"worker": cluster.Dense("127.0.0.1:1"), "ps": cluster.Dense(p)}
		}, "ps", []string{otherAddress, "/job:worker/replica:0/task:0 has the address 127.0.0.1:1 there and 127."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log logText
			logger := WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
			spec, listeners := addresses(t, map[string]int{"worker": 1, "ps": 1})
			workerSpec, psSpec := tt.specs(spec["worker"][0], spec["ps"][0])
			w := start(t, cluster.ServerDef{Cluster: workerSpec, Job: "worker"}, WithListener(listeners[worker0]), logger)
			start(t, cluster.ServerDef{Cluster: psSpec, Job: tt.psJob}, WithListener(listeners[ps]), logger)
			root := op.NewScope()
			x := op.Const(root, float32(1))
			s := session(t, w, root)
			if _, err := s.Run(t.Context(), nil, []graph.Output{x}, nil); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{otherName, called, unknown, otherAddress} {
				wanted := false
				for _, want := range tt.want {
					wanted = wanted || want == text
				}
				if strings.Contains(log.String(), text) != wanted {
					t.Errorf("logged %q: %t, want %t\n%s", text, !wanted, wanted, &log)
				}
			}
			for _, want := range tt.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("not logged: %q\n%s", want, &log)
				}
			}
		})
	}
}
