package cluster_test

import (
	"fmt"

	"github.com/weft-ml/weft/cluster"
)

// Both forms of a cluster specification describe the same tasks.
func ExampleParse() {
	for _, text := range []string{
		"ps|ps0:2222,worker|w0:2222;w1:2222",
		`{"ps": ["ps0:2222"], "worker": ["w0:2222", "w1:2222"]}`,
	} {
		spec, err := cluster.Parse(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, t := range spec.Tasks() {
			fmt.Println(t, "at", spec.Address(t))
		}
	}
	// Output:
	// /job:ps/replica:0/task:0 at ps0:2222
	// /job:worker/replica:0/task:0 at w0:2222
	// /job:worker/replica:0/task:1 at w1:2222
	// /job:ps/replica:0/task:0 at ps0:2222
	// /job:worker/replica:0/task:0 at w0:2222
	// /job:worker/replica:0/task:1 at w1:2222
}

// A cluster manager names the task in TF_CONFIG.
func ExampleParseTFConfig() {
	def, err := cluster.ParseTFConfig(`{
		"cluster": {"ps": ["ps0:2222"], "worker": ["w0:2222", "w1:2222"]},
		"task": {"type": "worker", "index": 1}
	}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(def.Self(), "at", def.Cluster.Address(def.Self()))
	// Output: /job:worker/replica:0/task:1 at w1:2222
}
