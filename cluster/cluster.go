// Package cluster describes the tasks of a cluster, their addresses, and which of them a process
// is.
//
// A [Spec] maps the tasks of each job to addresses. It can be written in the forms that users of
// TensorFlow know: the flag of its server (ps|host:port;host:port,worker|host:port), JSON ({"ps":
// ["host:port"]}, where a job may also be an object from task index to address), the TF_CONFIG
// environment variable, and a tensorflow.ServerDef in text form. A [ServerDef] is a Spec together
// with the name of one task.
package cluster

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/status"
)

// Spec holds the addresses of the tasks of a cluster, by job.
type Spec map[string]Job

// Job holds the addresses, "host:port", of the tasks of one job, by task index. Indices may have
// gaps: a task may know only some of its peers.
type Job map[int]string

// Dense returns a job whose tasks 0, 1, … have the given addresses.
func Dense(addresses ...string) Job {
	job := make(Job, len(addresses))
	for i, a := range addresses {
		job[i] = a
	}
	return job
}

// Task is the name of one task of a cluster.
type Task struct {
	Job   string
	Index int
}

// String returns the name of the task as a prefix of its device names,
// "/job:worker/replica:0/task:1".
func (t Task) String() string { return "/job:" + t.Job + "/replica:0/task:" + strconv.Itoa(t.Index) }

// Short returns the name of a task in messages for people, "worker/0".
func (t Task) Short() string { return t.Job + "/" + strconv.Itoa(t.Index) }

// ShortName returns [Task.Short] for the full name of a task or of one of its devices, such as
// "/job:worker/replica:0/task:0/device:CPU:0". It returns any other text as it is.
func ShortName(name string) string {
	task, err := ParseTask(strings.Split(name, "/device:")[0])
	if err != nil {
		return name
	}
	return task.Short()
}

// ParseTask parses the name of a task. A missing replica means replica 0.
func ParseTask(name string) (Task, error) {
	spec, err := device.Parse(name)
	switch {
	case err != nil:
		return Task{}, err
	case spec.Job == "" || spec.Task == device.Unset || spec.Replica > 0 || spec.Type != "" || spec.ID != device.Unset:
		return Task{}, status.InvalidArgumentf("'%s' is not the name of a task", name)
	}
	return Task{spec.Job, spec.Task}, nil
}

// FromJobs returns a Spec with the jobs of a message. A job that occurs twice is an error.
// Addresses are not checked; see [Spec.Validate].
func FromJobs(jobs iter.Seq2[string, map[int32]string]) (Spec, error) {
	spec := Spec{}
	for name, tasks := range jobs {
		if _, ok := spec[name]; ok {
			return nil, duplicateJob(name)
		}
		job := make(Job, len(tasks))
		for i, address := range tasks {
			job[int(i)] = address
		}
		spec[name] = job
	}
	return spec, nil
}

// Jobs returns the names of the jobs in order.
func (s Spec) Jobs() []string { return slices.Sorted(maps.Keys(s)) }

// Tasks returns all tasks, ordered by job and index.
func (s Spec) Tasks() []Task {
	var out []Task
	for _, job := range s.Jobs() {
		for _, i := range s[job].indices() {
			out = append(out, Task{job, i})
		}
	}
	return out
}

func (j Job) indices() []int { return slices.Sorted(maps.Keys(j)) }

// Address returns the address of a task, "" if the cluster has no such task.
func (s Spec) Address(t Task) string { return s[t.Job][t.Index] }

// OnlyTask returns the index of the task of a job that has one. A job with several tasks is an
// error. A job without tasks returns 0, which [ServerDef.Validate] rejects.
func (s Spec) OnlyTask(job string) (int, error) {
	indices := s[job].indices()
	switch len(indices) {
	case 0:
		return 0, nil
	case 1:
		return indices[0], nil
	}
	return 0, status.InvalidArgumentf("Must specify an explicit task index: the tasks of job %q are %s", job, s[job].ranges())
}

// Clone returns a deep copy of s.
func (s Spec) Clone() Spec {
	out := make(Spec, len(s))
	for name, job := range s {
		out[name] = maps.Clone(job)
	}
	return out
}

// String returns the cluster in the form of the flag if all jobs have tasks and no gaps, and as
// JSON otherwise.
func (s Spec) String() string {
	var jobs []string
	for _, name := range s.Jobs() {
		indices := s[name].indices()
		if len(indices) == 0 {
			return s.json()
		}
		tasks := make([]string, len(indices))
		for pos, i := range indices {
			if i != pos {
				return s.json()
			}
			tasks[pos] = s[name][i]
		}
		jobs = append(jobs, name+"|"+strings.Join(tasks, ";"))
	}
	return strings.Join(jobs, ",")
}

// Validate checks names, indices and addresses. No two tasks may have the same address.
func (s Spec) Validate() error {
	if len(s) == 0 {
		return status.InvalidArgumentf("the cluster has no jobs")
	}
	seen := map[string]Task{}
	for _, name := range s.Jobs() {
		if err := checkJob(name, s[name]); err != nil {
			return err
		}
	}
	for _, t := range s.Tasks() {
		address := s.Address(t)
		if other, ok := seen[address]; ok && !anyPort(address) {
			return status.InvalidArgumentf("Tasks %v and %v of the cluster have the same address %q", other, t, address)
		}
		seen[address] = t
	}
	return nil
}

func checkJob(name string, job Job) error {
	if parsed, err := device.Parse("/job:" + name); err != nil || parsed.Job != name {
		return status.InvalidArgumentf("%q is not a valid job name: a letter followed by letters, digits and '_'", name)
	}
	for _, i := range job.indices() {
		if i < 0 || i > math.MaxInt32 {
			return status.InvalidArgumentf("Task index %d of job %q is out of range", i, name)
		}
		if err := CheckAddress(job[i]); err != nil {
			return status.From(err).Annotate(" (task %d of job %q)", i, name)
		}
	}
	return nil
}

// CheckAddress returns an error unless an address has the form "host:port". Port 0 means that the
// system chooses a port.
func CheckAddress(address string) error {
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 || strings.ContainsAny(address[:colon], "/, \t\n") {
		return badAddress(address)
	}
	if _, err := strconv.ParseUint(address[colon+1:], 10, 16); err != nil {
		return badAddress(address)
	}
	if host := address[:colon]; strings.Contains(host, ":") && !(strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")) {
		return status.From(badAddress(address)).Annotate(" An IPv6 address needs brackets: %q.", "["+host+"]"+address[colon:])
	}
	return nil
}

func badAddress(address string) error {
	return status.InvalidArgumentf("Could not interpret %q as a host-port pair.", address)
}

func anyPort(address string) bool { return strings.HasSuffix(address, ":0") }

func duplicateJob(name string) error {
	return status.InvalidArgumentf("Duplicate job ID in cluster specification: %s", name)
}
