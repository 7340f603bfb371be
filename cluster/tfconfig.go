package cluster

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/status"
)

// EnvTFConfig is the environment variable in which cluster managers describe the cluster to every
// task.
const EnvTFConfig = "TF_CONFIG"

type tfConfig struct {
	Cluster Spec `json:"cluster"`
	Task    struct {
		Type  string          `json:"type"`
		Index json.RawMessage `json:"index"`
	} `json:"task"`
}

// ParseTFConfig reads the value of TF_CONFIG:
//
//	{"cluster": {"ps": ["host:port"], "worker": ["host:port"]}, "task": {"type": "worker", "index": 0}}
//
// The index is a number or, as some managers write it, a string. It may be missing if the job has
// one task, as in TensorFlow's Server. Jobs may be sparse. A task that is not part of the cluster,
// as evaluators are, is an error: there is nothing for it to serve. Errors begin with the name of
// the variable.
func ParseTFConfig(text string) (ServerDef, error) {
	def, err := parseTFConfig(text)
	if err != nil {
		return def, status.InvalidArgumentf("%s: %w", EnvTFConfig, err)
	}
	return def, nil
}

func parseTFConfig(text string) (ServerDef, error) {
	var c tfConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return ServerDef{}, jsonError("the value", err)
	}
	def := ServerDef{Cluster: c.Cluster, Job: c.Task.Type}
	switch {
	case len(c.Cluster) == 0:
		return def, status.InvalidArgumentf(`"cluster" is missing: {"cluster": {JOB: [HOST:PORT]}, "task": {"type": JOB, "index": TASK}}`)
	case c.Task.Type == "":
		return def, status.InvalidArgumentf(`"type" of "task" is missing: one of %s`, strings.Join(c.Cluster.Jobs(), ", "))
	}
	if c.Task.Index == nil {
		var err error
		def.Task, err = c.Cluster.OnlyTask(c.Task.Type)
		if err != nil {
			return def, status.From(err).Annotate(`: "index" of "task" is missing`)
		}
	} else {
		index, err := strconv.ParseFloat(strings.TrimSpace(strings.Trim(string(c.Task.Index), `"`)), 64)
		if err != nil || index != float64(int32(index)) {
			return def, status.InvalidArgumentf("the task index %s is not an integer", c.Task.Index)
		}
		def.Task = int(index)
	}
	return def, def.Validate()
}
