package cluster

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/status"
)

// EnvTFConfig is the environment variable that cluster managers set for every task.
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
// The index is a number or, as some managers write it, a string; one that is missing is 0. Jobs may be sparse. A task
// that is not part of the cluster, as evaluators are, is an error: there is nothing for it to serve.
func ParseTFConfig(text string) (ServerDef, error) {
	var c tfConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return ServerDef{}, jsonError(EnvTFConfig, err)
	}
	def := ServerDef{Cluster: c.Cluster, Job: c.Task.Type}
	if len(c.Cluster) == 0 || c.Task.Type == "" {
		return def, status.InvalidArgumentf(`%s must have "cluster" and "task": {"type": JOB, "index": TASK}`, EnvTFConfig)
	}
	if c.Task.Index != nil {
		index := strings.Trim(string(c.Task.Index), `"`)
		i, err := strconv.ParseInt(index, 10, 32)
		if err != nil || i < 0 {
			return def, status.InvalidArgumentf("the task index %s in %s is not a number", c.Task.Index, EnvTFConfig)
		}
		def.Task = int(i)
	}
	return def, def.Validate()
}
