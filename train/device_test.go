package train_test

import (
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// TestReplicaDeviceSetter places variables a, b and c within the devices given for each, and a node
// that reads a and b. The cases and their outcome are those of TensorFlow's replica_device_setter.
func TestReplicaDeviceSetter(t *testing.T) {
	spec := cluster.Spec{"ps": cluster.Dense("ps0:1", "ps1:1"), "worker": cluster.Dense("w0:1", "w1:1", "w2:1")}
	sky := cluster.Spec{"moon": cluster.Dense("m0:1", "m1:1"), "sun": cluster.Dense("s0:1")}
	for _, tt := range []struct {
		name   string
		cfg    train.DeviceSetter
		within [3][]string // scopes around a, b, c; outermost first
		want   [3]string
		reader string
		byLoad bool
	}{
		{name: "round robin", cfg: train.DeviceSetter{Cluster: spec},
			want: [3]string{"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0"}, reader: "/job:worker"},
		{name: "CPU within", cfg: train.DeviceSetter{Cluster: spec}, within: [3][]string{{"/cpu:0"}},
			want: [3]string{"/job:ps/task:0/device:CPU:0", "/job:ps/task:1", "/job:ps/task:0"}, reader: "/job:worker"},
		{name: "pinned to a job", cfg: train.DeviceSetter{Cluster: spec}, within: [3][]string{{}, {"/job:moon"}, {"/job:moon", "/job:ps"}},
			want: [3]string{"/job:ps/task:0", "/job:moon", "/job:ps/task:1"}, reader: "/job:worker"},
		{name: "pinned to a task", cfg: train.DeviceSetter{Cluster: spec}, within: [3][]string{{"/job:ps/task:1"}},
			want: [3]string{"/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:0"}, reader: "/job:worker"},
		{name: "no job", cfg: train.DeviceSetter{PSTasks: 1, PSDevice: "/cpu:0"}, within: [3][]string{{}, {"/job:moon"}},
			want: [3]string{"/device:CPU:0", "/job:moon/device:CPU:0", "/device:CPU:0"}, reader: "/job:worker"},
		{name: "other jobs", cfg: train.DeviceSetter{Cluster: sky, PSDevice: "/job:moon/cpu:0", WorkerDevice: "/job:sun/task:0"},
			want:   [3]string{"/job:moon/task:0/device:CPU:0", "/job:moon/task:1/device:CPU:0", "/job:moon/task:0/device:CPU:0"},
			reader: "/job:sun/task:0"},
		{name: "no servers", cfg: train.DeviceSetter{WorkerDevice: "/job:worker/task:2"},
			want: [3]string{"/job:worker/task:2", "/job:worker/task:2", "/job:worker/task:2"}, reader: "/job:worker/task:2"},
		{name: "by load", cfg: train.DeviceSetter{PSTasks: 2}, byLoad: true,
			want: [3]string{"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1"}, reader: "/job:worker"},
		{name: "malformed", cfg: train.DeviceSetter{PSTasks: 1, PSDevice: "/jobs"},
			want: [3]string{"/jobs", "/jobs", "/jobs"}, reader: "/jobs"},
	} {
		for _, resource := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				if tt.byLoad {
					tt.cfg.Strategy = train.LeastLoaded(2, train.VariableBytes)
				}
				s := newScope().WithDeviceFunc(train.ReplicaDeviceSetter(tt.cfg))
				var opts []train.VariableOption
				if resource {
					opts = append(opts, train.Resource())
				}
				sizes := []int64{100, 10, 20}
				var vars [3]*train.Variable
				for i, name := range []string{"a", "b", "c"} {
					in := s
					for _, dev := range tt.within[i] {
						in = in.WithDevice(dev)
					}
					vars[i] = train.NewVariable(in, name, tensor.Shape{sizes[i]}, tensor.Float32, train.Zeros, opts...)
				}
				reader := op.Pack(s, []op.Output{op.Rank(s, vars[0].Value), op.Rank(s, vars[1].Value)})
				if err := s.Err(); err != nil {
					t.Fatal(err)
				}
				for i, v := range vars {
					for _, n := range []*graph.Node{v.Handle.Node, v.Initializer, v.Initial.Node, v.Value.Node} {
						if n.Device != tt.want[i] {
							t.Errorf("%s is on %q, want %q", n.Name, n.Device, tt.want[i])
						}
					}
				}
				if reader.Node.Device != tt.reader {
					t.Errorf("the reader is on %q, want %q", reader.Node.Device, tt.reader)
				}
			})
		}
	}
}
