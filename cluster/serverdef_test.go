package cluster_test

import (
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

const serverDef = `
	cluster {
	  job { name: "ps" tasks { key: 0 value: "a:1" } tasks { key: 2 value: "b:2" } }
	  job { name: 'worker' tasks: { key: 1, value: "c:3" } }
	}
	job_name: "worker"
	task_index: 1
	default_session_config { device_count { key: "CPU" value: 3 } allow_soft_placement: true }
	protocol: "grpc"
	port: 4000
	cluster_device_filters {
	  jobs { name: "worker" tasks { key: 1 value { device_filters: "/job:ps" } } }
	}`

func TestParseServerDef(t *testing.T) {
	def, err := cluster.ParseServerDef([]byte(serverDef))
	if err != nil {
		t.Fatal(err)
	}
	var config pb.ConfigProto
	if err := proto.Unmarshal(def.DefaultSessionConfig, &config); err != nil || !config.AllowSoftPlacement {
		t.Errorf("session config %v, %v: want soft placement", &config, err)
	}
	def.DefaultSessionConfig = nil
	want := cluster.ServerDef{
		Cluster: cluster.Spec{"ps": {0: "a:1", 2: "b:2"}, "worker": {1: "c:3"}},
		Job:     "worker", Task: 1, Port: 4000, CPUDevices: 3,
		Filters: map[cluster.Task][]string{{Job: "worker", Index: 1}: {"/job:ps"}},
	}
	if !reflect.DeepEqual(def, want) {
		t.Errorf("got %+v\nwant %+v", def, want)
	}
	if got := def.Self().String(); got != "/job:worker/replica:0/task:1" {
		t.Errorf("Self() = %s", got)
	}
}

func TestParseBinaryServerDef(t *testing.T) {
	text, err := cluster.ParseServerDef([]byte(serverDef))
	if err != nil {
		t.Fatal(err)
	}
	var m pb.ServerDef
	if err := prototext.Unmarshal([]byte(serverDef), &m); err != nil {
		t.Fatal(err)
	}
	binary, err := proto.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	// an unknown field
	binary = protowire.AppendVarint(protowire.AppendTag(binary, 1000, protowire.VarintType), 1)
	got, err := cluster.ParseServerDef(binary)
	if err != nil || !reflect.DeepEqual(got, text) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, text)
	}
}

func TestParseServerDefRejects(t *testing.T) {
	ps := `cluster { job { name: "ps" tasks { key: 0 value: "a:1" } tasks { key: 1 value: "a:2" } tasks { key: 5 value: "a:3" } } } `
	for _, tt := range []struct{ text, want string }{
		{"", "the cluster has no jobs"},
		{"nonsense: 1", "cannot read the ServerDef"},
		{"\n\x7f\x12\x01", "cannot read the ServerDef"},
		{ps + `job_name: "worker"`, `Job "worker" was not defined in cluster: its jobs are ps`},
		{ps + `job_name: "ps" task_index: 3`, `Task 3 was not defined in job "ps": its tasks are 0-1, 5`},
		{ps + `job_name: "ps" protocol: "grpc+verbs"`, `protocol "grpc+verbs"`},
		{ps + `job_name: "ps" replica: 1`, "only replica 0"},
		{ps + `job_name: "ps" port: 70000`, "70000 is not a port"},
		{ps + `job_name: "ps" default_session_config { device_count { key: "CPU" value: -1 } }`, "-1 CPU devices"},
		{ps + `job_name: "ps" cluster_device_filters { jobs { name: "ps" tasks { key: 0 value { device_filters: "garbage" } } } }`,
			"Invalid device filter: 'garbage' (for /job:ps/replica:0/task:0)"},
		{`cluster { job { name: "ps" } job { name: "ps" } } job_name: "ps"`, "Duplicate job ID in cluster specification: ps"},
	} {
		_, err := cluster.ParseServerDef([]byte(tt.text))
		if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v (%v), want InvalidArgument with %q", tt.text, err, status.CodeOf(err), tt.want)
		}
	}
}

func TestParseTFConfig(t *testing.T) {
	chief := cluster.Spec{"chief": cluster.Dense("a:1"), "worker": {3: "b:1"}}
	for _, tt := range []struct {
		text string
		want cluster.ServerDef
	}{
		{`{"cluster": {"chief": ["a:1"], "worker": {"3": "b:1"}}, "task": {"type": "worker", "index": 3}, "environment": "cloud"}`,
			cluster.ServerDef{Cluster: chief, Job: "worker", Task: 3}},
		{`{"cluster": {"chief": ["a:1"], "worker": {"3": "b:1"}}, "task": {"type": "worker", "index": "3"}}`,
			cluster.ServerDef{Cluster: chief, Job: "worker", Task: 3}},
		{`{"cluster": {"chief": ["a:1"], "worker": {"3": "b:1"}}, "task": {"type": "worker", "index": " 3 "}}`,
			cluster.ServerDef{Cluster: chief, Job: "worker", Task: 3}},
		{`{"cluster": {"chief": ["a:1"], "worker": {"3": "b:1"}}, "task": {"type": "worker", "index": 3.0}}`,
			cluster.ServerDef{Cluster: chief, Job: "worker", Task: 3}},
		// a job without tasks
		{`{"cluster": {"ps": [], "worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}`,
			cluster.ServerDef{Cluster: cluster.Spec{"ps": {}, "worker": {0: "a:1"}}, Job: "worker"}},
		{`{"cluster": {"master": ["a:1"]}, "task": {"type": "master"}}`,
			cluster.ServerDef{Cluster: cluster.Spec{"master": cluster.Dense("a:1")}, Job: "master"}},
		// a job with one task, whatever its index
		{`{"cluster": {"chief": ["a:1"], "worker": {"3": "b:1"}}, "task": {"type": "worker"}}`,
			cluster.ServerDef{Cluster: chief, Job: "worker", Task: 3}},
		{`{"cluster": {"ps": ["[::1]:1"]}, "task": {"type": "ps"}}`,
			cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("[::1]:1")}, Job: "ps"}},
	} {
		got, err := cluster.ParseTFConfig(tt.text)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, %v; want %+v", tt.text, got, err, tt.want)
		}
	}
}

func TestParseTFConfigRejects(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{``, "the value is not JSON: unexpected end of JSON input"},
		{`[]`, "the value is of JSON's type array, want an object"},
		{`{}`, `"cluster" is missing: {"cluster": {JOB: [HOST:PORT]}, "task": {"type": JOB, "index": TASK}}`},
		{`{"cluster": [], "task": {"type": "ps"}}`, "the cluster must be an object from the name of a job to its tasks"},
		{`{"cluster": {"ps": ["a:1"], "w": ["a:2"]}}`, `"type" of "task" is missing: one of ps, w`},
		{`{"cluster": {"ps": ["a:1"]}, "task": "ps"}`, `"task" is of JSON's type string, want an object`},
		{`{"cluster": {"ps": ["a:1"]}, "task": {"type": 1}}`, `"task.type" is of JSON's type number, want a string`},
		{`{"cluster": {"ps": ["a:1", "b:1"]}, "task": {"type": "ps"}}`,
			`Must specify an explicit task index: the tasks of job "ps" are 0-1: "index" of "task" is missing`},
		{`{"cluster": {"ps": ["::1:4222"]}, "task": {"type": "ps"}}`,
			`Could not interpret "::1:4222" as a host-port pair. An IPv6 address needs brackets: "[::1]:4222". (task 0 of job "ps")`},
		{`{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": "x"}}`, `the task index "x" is not an integer`},
		{`{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0.5}}`, "the task index 0.5 is not an integer"},
		{`{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 1e10}}`, "the task index 1e10 is not an integer"},
		{`{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": "NaN"}}`, `the task index "NaN" is not an integer`},
		{`{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": null}}`, "the task index null is not an integer"},
		{`{"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": -1}}`, `Task -1 was not defined in job "ps": its tasks are 0`},
		{`{"cluster": {"ps": []}, "task": {"type": "ps", "index": 0}}`, `Task 0 was not defined in job "ps": it has none`},
		{`{"cluster": {"ps": ["a:1"]}, "task": {"type": "evaluator", "index": 0}}`, `Job "evaluator" was not defined in cluster: its jobs are ps`},
		{`{"cluster": {"ps": ["a"]}, "task": {"type": "ps", "index": 0}}`, `Could not interpret "a" as a host-port pair. (task 0 of job "ps")`},
		{`{"cluster": {"ps": 1}, "task": {"type": "ps", "index": 0}}`,
			`The tasks for job "ps" must be a list of addresses or an object from task index to address`},
	} {
		_, err := cluster.ParseTFConfig(tt.text)
		if status.CodeOf(err) != status.InvalidArgument || err.Error() != "TF_CONFIG: "+tt.want {
			t.Errorf("%s: got %v (%v), want InvalidArgument with %q", tt.text, err, status.CodeOf(err), tt.want)
		}
	}
}

func FuzzParseTFConfig(f *testing.F) {
	f.Add(`{"cluster": {"chief": ["a:1"], "worker": {"3": "b:1"}}, "task": {"type": "worker", "index": "3"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		def, err := cluster.ParseTFConfig(text)
		if err == nil && def.Cluster.Address(def.Self()) == "" {
			t.Errorf("%q was accepted without an address for its task", text)
		}
	})
}

func FuzzParseServerDef(f *testing.F) {
	f.Add([]byte(serverDef))
	f.Fuzz(func(t *testing.T, text []byte) {
		def, err := cluster.ParseServerDef(text)
		if err == nil && def.Cluster.Address(def.Self()) == "" {
			t.Errorf("%q was accepted without an address for its task", text)
		}
	})
}
