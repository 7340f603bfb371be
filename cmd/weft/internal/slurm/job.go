package slurm

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// A Job is the job of Slurm in which this process runs.
type Job struct {
	id    string
	hosts []string
	flags []string // for each call of srun
}

// FromEnvironment returns the job that the variables of Slurm describe. get is os.Getenv.
func FromEnvironment(get func(name string) string, flags []string) (*Job, error) {
	job := &Job{id: get("SLURM_JOB_ID"), flags: flags}
	if job.id == "" {
		return nil, errors.New("not in a job of Slurm (SLURM_JOB_ID is not set): use sbatch or salloc")
	}
	if n := get("SLURM_STEP_NUM_TASKS"); n != "" && n != "1" {
		return nil, fmt.Errorf("srun has started %s launchers: start one, in the batch script and without srun", n)
	}
	list := get("SLURM_JOB_NODELIST")
	if list == "" {
		list = get("SLURM_NODELIST")
	}
	if list == "" {
		return nil, errors.New("SLURM_JOB_NODELIST is not set")
	}
	var err error
	job.hosts, err = Expand(list)
	return job, err
}

// Hosts returns the machines of the job.
func (j *Job) Hosts() []string { return j.hosts }

// Command returns the command that runs another command on a host, as a step with a name.
func (j *Job) Command(host, name string, command []string) []string {
	out := append([]string{
		"srun", "--jobid=" + j.id, "--job-name=" + name, "--nodes=1", "--ntasks=1", "--ntasks-per-node=1", "--nodelist=" + host,
		"--overlap", "--input=none", "--unbuffered", "--quiet",
	}, j.flags...)
	return append(append(out, "--"), command...)
}

// Signal sends a signal to the processes of the step that srun has started with [Job.Command]. srun
// itself answers SIGTERM by killing the step.
func (j *Job) Signal(srun *os.Process, name string, s syscall.Signal) error {
	if s == syscall.SIGKILL {
		return srun.Signal(syscall.SIGTERM)
	}
	step, err := j.step(name)
	if err != nil { // srun waits for its resources, or ends
		return errors.Join(err, srun.Signal(syscall.SIGTERM))
	}
	out, err := exec.Command("scancel", fmt.Sprintf("--signal=%d", int(s)), step).CombinedOutput()
	// Machines of the job that have no process of the step answer so, after the signal was sent.
	if err != nil && !strings.Contains(string(out), "Invalid job id specified") {
		return fmt.Errorf("scancel %s: %w: %s", step, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// step returns the identifier of the step with a name.
func (j *Job) step(name string) (string, error) {
	out, err := exec.Command("squeue", "--noheader", "--steps", "--jobs="+j.id, "--format=%i %j").Output()
	if err != nil {
		return "", fmt.Errorf("squeue: %w", err)
	}
	return findStep(string(out), name)
}

// findStep returns the identifier of the step with a name in lines of "ID NAME". After a restart a
// name may occur twice; the last one is the newest.
func findStep(lines, name string) (string, error) {
	found := ""
	for line := range strings.Lines(lines) {
		if id, of, _ := strings.Cut(strings.TrimSpace(line), " "); of == name {
			found = id
		}
	}
	if found == "" {
		return "", fmt.Errorf("the job has no step %q", name)
	}
	return found, nil
}
