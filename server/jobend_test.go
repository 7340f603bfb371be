package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/op"
)

// TestJobEnds lists what three tasks do at each second, and when the job is over. Each character is
// a task: s is silent, g gone, i idle, b busy.
func TestJobEnds(t *testing.T) {
	spec := cluster.Spec{"ps": cluster.Dense("a:1", "b:1"), "chief": cluster.Dense("c:1"), "worker": cluster.Dense("d:1", "e:1")}
	what := map[rune]doing{'s': silent, 'g': gone, 'i': idle, 'b': busy}
	for _, tt := range []struct {
		name  string
		tasks []string
		over  int // index in tasks; -1 for never
	}{
		{"all end", []string{"bbb", "gbb", "ggb", "ggg", "ggg", "ggg"}, 5},
		{"a task is restarted", []string{"bbb", "ggg", "ggg", "bgg", "ggg", "ggg", "ggg"}, 6},
		{"sessions are closed", []string{"iii", "ibi", "iii", "iii", "iii"}, 4},
		{"one ends, the others are idle", []string{"iib", "iig", "iig", "iig"}, 3},
		{"nothing has begun", []string{"iii", "iii", "iii", "iii"}, -1},
		{"a task has never been there", append([]string{"bbg"}, slices.Repeat([]string{"ggg"}, 30)...), 21},
		{"a task starts late", append(append([]string{"bbg"}, slices.Repeat([]string{"ggg"}, 15)...), "ggb", "ggg", "ggg", "ggg"), 19},
		{"a task is silent", []string{"bbb", "ggs", "ggs", "ggs", "ggs"}, -1},
		{"a silent task comes back and ends", []string{"bbb", "ggs", "ggb", "ggg", "ggg", "ggg"}, 5},
	} {
		w := newJobWatch(spec, 2*time.Second)
		got := -1
		for second, states := range tt.tasks {
			var tasks []doing
			for _, c := range states {
				tasks = append(tasks, what[c])
			}
			if over, _ := w.observe(time.Unix(int64(second), 0), tasks); over && got < 0 {
				got = second
			}
		}
		if got != tt.over {
			t.Errorf("%s: over at %d, want %d", tt.name, got, tt.over)
		}
	}
}

func TestTasksThatHaveEnded(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("dial: %w", syscall.ECONNREFUSED), true},
		{fmt.Errorf("dial: %w", &net.DNSError{IsNotFound: true}), true},
		{&net.DNSError{IsTimeout: true}, false},
		{context.DeadlineExceeded, false},
		{errors.New("refused"), false},
	} {
		if got := hasEnded(tt.err); got != tt.want {
			t.Errorf("%v: %t", tt.err, got)
		}
	}
}

// TestExitWithJob runs a job on two workers. The parameter server ends when one has closed its
// session and the other has ended.
func TestExitWithJob(t *testing.T) {
	const quiet = time.Second
	spec, listeners := addresses(t, map[string]int{"ps": 1, "worker": 2})
	p, err := New(cluster.ServerDef{Cluster: spec, Job: "ps"}, WithListener(listeners[ps]), WithExitWithJob(quiet))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Run(context.Background()) }()
	w0 := start(t, cluster.ServerDef{Cluster: spec, Job: "worker"}, WithListener(listeners[worker0]))
	w1 := start(t, cluster.ServerDef{Cluster: spec, Job: "worker", Task: 1}, WithListener(listeners[cluster.Task{Job: "worker", Index: 1}]))
	// Both sessions exist before one is closed, so that the job is not over between the two.
	var sessions []*weft.Session
	for _, w := range []*Server{w0, w1} {
		root := op.NewScope()
		sum := op.Add(root.WithDevice("/job:ps/task:0"), op.Const(root, float32(1)), op.Const(root, float32(1)))
		s := session(t, w, root)
		if _, err := s.Fetch(t.Context(), nil, sum); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	if err := sessions[0].Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Fatalf("the parameter server has ended during the job: %v", err)
	case <-time.After(quiet + quiet/2):
	}
	stop(t, w1)
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the parameter server has not ended")
	}
}

func TestJobWaitsForOthers(t *testing.T) {
	spec := cluster.Spec{"ps": cluster.Dense("a:1"), "worker": cluster.Dense("b:1")}
	w := newJobWatch(spec, time.Minute)
	if want := []cluster.Task{{Job: "worker"}}; !slices.Equal(w.tasks, want) || w.interval() != inspectTimeout {
		t.Errorf("waits for %v every %v", w.tasks, w.interval())
	}
}
