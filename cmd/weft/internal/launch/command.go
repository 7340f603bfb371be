package launch

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/cluster"
)

// Placeholders describes what the arguments of the command may contain.
var Placeholders = [][2]string{
	{"{job_name}", "job of the task"},
	{"{task_index}", "index of the task in its job"},
	{"{ps_hosts}, {worker_hosts}, {chief_hosts}", "addresses of a job, separated by commas"},
	{"{target}", "target of the task for sessions, grpc://HOST:PORT"},
	{"{cluster_spec}", "the cluster as in --cluster-spec of weft server"},
}

// expand replaces the placeholders in a command.
func expand(command []string, spec cluster.Spec, task cluster.Task) []string {
	pairs := []string{
		"{job_name}", task.Job,
		"{task_index}", strconv.Itoa(task.Index),
		"{target}", "grpc://" + spec.Address(task),
		"{cluster_spec}", spec.String(),
	}
	for _, job := range []string{"ps", "worker", "chief"} {
		pairs = append(pairs, "{"+job+"_hosts}", strings.Join(addresses(spec, job), ","))
	}
	replacer := strings.NewReplacer(pairs...)
	out := make([]string, len(command))
	for i, arg := range command {
		out[i] = replacer.Replace(arg)
	}
	return out
}

// addresses returns the addresses of a job in the order of its tasks.
func addresses(spec cluster.Spec, job string) []string {
	var out []string
	for _, task := range spec.Tasks() {
		if task.Job == job {
			out = append(out, spec.Address(task))
		}
	}
	return out
}

// environment returns the variables that a program of a task gets in addition.
func environment(spec cluster.Spec, task cluster.Task) ([]string, error) {
	hosts := map[string][]string{}
	for job := range spec {
		hosts[job] = addresses(spec, job)
	}
	config, err := json.Marshal(map[string]any{
		"cluster": hosts,
		"task":    map[string]any{"type": task.Job, "index": task.Index},
	})
	if err != nil {
		return nil, err
	}
	return []string{
		cluster.EnvTFConfig + "=" + string(config),
		"WEFT_TARGET=grpc://" + spec.Address(task),
		"PYTHONUNBUFFERED=1", // lines appear when they are printed
	}, nil
}
