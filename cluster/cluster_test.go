package cluster_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/status"
)

func TestParse(t *testing.T) {
	psWorker := cluster.Spec{"ps": cluster.Dense("a:1", "b:2"), "worker": cluster.Dense("c:3")}
	for _, tt := range []struct {
		text string
		want cluster.Spec
	}{
		{"ps|a:1;b:2,worker|c:3", psWorker},
		{" ps | a:1 ; b:2 , worker|c:3 ", psWorker},
		{`{"ps": ["a:1", "b:2"], "worker": ["c:3"]}`, psWorker},
		{`{"ps": {"0": "a:1", "1": "b:2"}, "worker": {"0": "c:3"}}`, psWorker},
		{`{"worker": {"3": "c:3", "10": "[::1]:9"}}`, cluster.Spec{"worker": {3: "c:3", 10: "[::1]:9"}}},
		{`{"ps": [], "worker": ["c:3"]}`, cluster.Spec{"ps": {}, "worker": cluster.Dense("c:3")}},
		{"local|localhost:0;localhost:0", cluster.Spec{"local": cluster.Dense("localhost:0", "localhost:0")}},
	} {
		got, err := cluster.Parse(tt.text)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Parse(%q) = %v, %v; want %v", tt.text, got, err, tt.want)
		}
		again, err := cluster.Parse(got.String())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("Parse(%q), as %q was written, = %v, %v", got.String(), tt.text, again, err)
		}
	}
}

func TestParseRejects(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "want JOB|HOST:PORT"},
		{"ps", "want JOB|HOST:PORT"},
		{"ps|", `Could not interpret "" as a host-port pair.`},
		{"ps|a", `Could not interpret "a" as a host-port pair.`},
		{"ps|a:b", `Could not interpret "a:b" as a host-port pair.`},
		{"ps|a:65536", `Could not interpret "a:65536" as a host-port pair.`},
		{"ps|http://a:1", `Could not interpret "http://a:1" as a host-port pair.`},
		{"ps|a:1,ps|b:1", "Duplicate job ID in cluster specification: ps"},
		{"ps|a:1,worker|a:1", "have the same address"},
		{"1ps|a:1", "not a valid job name"},
		{"ps/task:0|a:1", "not a valid job name"},
		{`{}`, "the cluster has no jobs"},
		{`{"ps": 3}`, "must be a list of addresses or an object"},
		{`{"ps": "a:1"}`, "must be a list of addresses or an object"},
		{`{"ps": {"x": "a:1"}}`, `"x" is not a task index (job "ps")`},
		{`{"ps": {"-1": "a:1"}}`, `"-1" is not a task index (job "ps")`},
		{`{"ps": {"0": "a:1", "0": "b:1"}}`, "Duplicate task ID in cluster specification: job ps, task 0"},
		{`{"ps": {"0": 1}}`, `the address of task 0 of job "ps" is not a string`},
		{`{"ps": ["a:1"], "ps": ["b:1"]}`, "Duplicate job ID in cluster specification: ps"},
		{`{"ps": ["a:1"]`, "the cluster is not JSON"},
		{`{"ps": ["a:1"]} x`, "the cluster is not JSON"},
	} {
		_, err := cluster.Parse(tt.text)
		if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Parse(%q): got %v (%v), want InvalidArgument with %q", tt.text, err, status.CodeOf(err), tt.want)
		}
	}
}

func TestTasksAreOrdered(t *testing.T) {
	spec := cluster.Spec{"worker": {10: "a:1", 2: "b:1"}, "ps": cluster.Dense("c:1")}
	want := []cluster.Task{{Job: "ps"}, {Job: "worker", Index: 2}, {Job: "worker", Index: 10}}
	if got := spec.Tasks(); !slices.Equal(got, want) {
		t.Errorf("Tasks() = %v, want %v", got, want)
	}
	if got := spec.Address(cluster.Task{Job: "worker", Index: 10}); got != "a:1" {
		t.Errorf("Address = %q", got)
	}
	if got := spec.Address(cluster.Task{Job: "chief"}); got != "" {
		t.Errorf("Address of a job that does not exist = %q", got)
	}
}

func TestTaskNames(t *testing.T) {
	task := cluster.Task{Job: "worker", Index: 3}
	if got := task.String(); got != "/job:worker/replica:0/task:3" {
		t.Errorf("String() = %q", got)
	}
	for _, name := range []string{"/job:worker/replica:0/task:3", "/job:worker/task:3"} {
		if got, err := cluster.ParseTask(name); err != nil || got != task {
			t.Errorf("ParseTask(%q) = %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "/job:worker", "/task:3", "/job:worker/replica:1/task:3", "/job:w/task:0/cpu:0", "x"} {
		if got, err := cluster.ParseTask(name); err == nil {
			t.Errorf("ParseTask(%q) = %v, want an error", name, got)
		}
	}
}

func TestFromJobsRejectsRepeatedJobs(t *testing.T) {
	jobs := func(yield func(string, map[int32]string) bool) {
		_ = yield("ps", map[int32]string{0: "a:1"}) && yield("ps", map[int32]string{0: "b:1"})
	}
	if _, err := cluster.FromJobs(jobs); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("got %v, want InvalidArgument", err)
	}
	spec, err := cluster.FromJobs(maps.All(map[string]map[int32]string{"ps": {4: "a:1"}}))
	if want := (cluster.Spec{"ps": {4: "a:1"}}); err != nil || !reflect.DeepEqual(spec, want) {
		t.Errorf("got %v, %v; want %v", spec, err, want)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	spec := cluster.Spec{"ps": cluster.Dense("a:1")}
	spec.Clone()["ps"][0] = "b:1"
	if spec["ps"][0] != "a:1" {
		t.Error("a change to the clone is seen in the original")
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"ps|a:1;b:2,worker|c:3", `{"ps": ["a:1"], "w": {"3": "b:1"}}`, "|", `{"a":{"0":null}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := cluster.Parse(text)
		if err != nil {
			return
		}
		again, err := cluster.Parse(spec.String())
		if err != nil || !reflect.DeepEqual(again, spec) {
			t.Errorf("%q was read as %v, written as %q, and read as %v, %v", text, spec, spec.String(), again, err)
		}
	})
}
