package slurm

import (
	"slices"
	"strings"
	"testing"
)

func TestFromEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name  string
		env   map[string]string
		hosts []string
		err   string
	}{
		{"a batch script", map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_NODELIST": "x"}, []string{"n1", "n2"}, ""},
		{"an old release", map[string]string{"SLURM_JOB_ID": "7", "SLURM_NODELIST": "n1"}, []string{"n1"}, ""},
		{"an interactive step", map[string]string{"SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "1", "SLURM_JOB_NODELIST": "n1"}, []string{"n1"}, ""},
		{"a step", map[string]string{"SLURM_JOB_ID": "7", "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_NODELIST": "n1"}, nil, "srun has started 4 launchers"},
		{"no job", nil, nil, "SLURM_JOB_ID is not set"},
		{"no nodes", map[string]string{"SLURM_JOB_ID": "7"}, nil, "SLURM_JOB_NODELIST is not set"},
		{"a bad list", map[string]string{"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1"}, nil, `host list "n[1"`},
	} {
		job, err := FromEnvironment(func(name string) string { return tt.env[name] }, nil)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want an error with %q", tt.name, err, tt.err)
			}
		case err != nil || job.id != "7" || !slices.Equal(job.Hosts(), tt.hosts):
			t.Errorf("%s: got %+v, %v", tt.name, job, err)
		}
	}
}

func TestCommand(t *testing.T) {
	job := &Job{id: "7", flags: []string{"--cpus-per-task=4"}}
	got := strings.Join(job.Command("n1", "worker-0", []string{"python", "--", "x"}), " ")
	if want := " --cpus-per-task=4 -- python -- x"; !strings.HasPrefix(got, "srun ") || !strings.HasSuffix(got, want) || !strings.Contains(got, "--nodelist=n1 ") {
		t.Errorf("got %q", got)
	}
}

func TestFindStep(t *testing.T) {
	lines := "7.batch batch\n7.3 worker-1\n7.1 worker-10\n7.12 worker-1\n"
	if got, err := findStep(lines, "worker-1"); err != nil || got != "7.12" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := findStep(lines, "worker-2"); err == nil {
		t.Error("a step that does not exist is found")
	}
}
