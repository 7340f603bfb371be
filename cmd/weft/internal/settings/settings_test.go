package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// values of the flags of the tests.
type testFlags struct {
	job    string
	task   int
	drain  time.Duration
	rest   bool
	deny   []string
	spec   string
	def    string
	flags  *pflag.FlagSet
	config string // name of the file
}

func newFlags(t *testing.T) *testFlags {
	t.Helper()
	v := &testFlags{flags: pflag.NewFlagSet("weft", pflag.ContinueOnError)}
	v.flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	Add(v.flags)
	v.flags.StringVar(&v.job, "job-name", "", "")
	v.flags.IntVar(&v.task, "task-index", 0, "")
	v.flags.IntVar(&v.task, "task-id", 0, "")
	v.flags.DurationVar(&v.drain, "drain-timeout", time.Second, "")
	v.flags.BoolVar(&v.rest, "rest", false, "")
	v.flags.StringArrayVar(&v.deny, "deny-op", nil, "")
	v.flags.StringVar(&v.spec, "cluster-spec", "", "")
	v.flags.StringVar(&v.def, "server-def", "", "")
	return v
}

// write writes a file and sets the flag for it.
func (v *testFlags) write(t *testing.T, text string) {
	t.Helper()
	v.config = filepath.Join(t.TempDir(), "weft.yaml")
	if err := os.WriteFile(v.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEFT_CONFIG", v.config)
}

func (v *testFlags) from(flag string) string {
	return strings.ReplaceAll(Origin(v.flags.Lookup(flag)), v.config, "FILE")
}

func TestPrecedence(t *testing.T) {
	v := newFlags(t)
	v.write(t, `
# a comment
job_name: ps
task-index: 3
drain-timeout: 5m
rest: true
deny-op: [ReadFile, WriteFile]
cluster-spec:
  ps: ["a:1", "b:1"]
`)
	t.Setenv("WEFT_DRAIN_TIMEOUT", "7s")
	t.Setenv("WEFT_JOB_NAME", "worker")
	if err := v.flags.Parse([]string{"--job-name=chief", "--task-id=1"}); err != nil {
		t.Fatal(err)
	}
	if err := Apply(v.flags); err != nil {
		t.Fatal(err)
	}
	if v.job != "chief" || v.task != 1 || v.drain != 7*time.Second || !v.rest || strings.Join(v.deny, " ") != "ReadFile WriteFile" ||
		v.spec != `{"ps":["a:1","b:1"]}` {
		t.Errorf("got %+v", v)
	}
	for flag, want := range map[string]string{
		"job-name": "the command line", "task-index": "", "drain-timeout": "WEFT_DRAIN_TIMEOUT", "rest": "FILE:6", "server-def": "", "config": "WEFT_CONFIG",
	} {
		if got := v.from(flag); got != want {
			t.Errorf("%s comes from %q, want %q", flag, got, want)
		}
	}
}

// The command line describes the task in one way, and the environment and the file in another.
func TestCommandLineGoesFirst(t *testing.T) {
	v := newFlags(t)
	v.write(t, "cluster-spec: ps|a:1\njob-name: ps\n")
	t.Setenv("WEFT_CLUSTER_SPEC", "ps|b:1")
	if err := v.flags.Parse([]string{"--server-def=x"}); err != nil {
		t.Fatal(err)
	}
	if err := Apply(v.flags); err != nil || v.spec != "" || v.def != "x" || v.job != "ps" {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"job-name: ps\ndrain-timeot: 3s\n", `FILE:2: unknown key "drain-timeot"; the nearest is "drain-timeout"`},
		{"taskindex: 3", `FILE:1: unknown key "taskindex"; the nearest is "task-index"`},
		{"zzz: 3", `FILE:1: unknown key "zzz"`},
		{"help: true", `FILE:1: unknown key "help"`},
		{"config: other.yaml", `FILE:1: unknown key "config"`},
		{"\njob-name: ps\njob_name: ps", "FILE:3: job-name is in line 2, too"},
		{"drain-timeout: soon", `FILE:1: drain-timeout: time: invalid duration "soon"`},
		{"task-index: [1, 2]", "FILE:1: task-index: want one value, not a list"},
		{"deny-op: [[a]]", "FILE:1: deny-op: want a list of values"},
		{"job-name: {a: b}", "FILE:1: job-name: want a value"},
		{"job-name:", "FILE:1: job-name: the value is missing"},
		{"- job-name", "FILE:1: want lines of 'name: value'"},
		{"job-name: 'x", "FILE: "},
	} {
		v := newFlags(t)
		v.write(t, tt.text)
		err := Apply(v.flags)
		if err == nil || !strings.HasPrefix(strings.ReplaceAll(err.Error(), v.config, "FILE"), tt.want) {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
	v := newFlags(t)
	t.Setenv("WEFT_CONFIG", "/no/such/file")
	if err := Apply(v.flags); err == nil || !strings.HasPrefix(err.Error(), "--config: open /no/such/file") {
		t.Errorf("got %v", err)
	}
	t.Setenv("WEFT_TASK_INDEX", "one")
	if err := Apply(newFlags(t).flags); err == nil || !strings.HasPrefix(err.Error(), "WEFT_TASK_INDEX: ") {
		t.Errorf("got %v", err)
	}
	t.Setenv("WEFT_TASK_INDEX", "")
	v = newFlags(t)
	v.write(t, "")
	if err := Apply(v.flags); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}
