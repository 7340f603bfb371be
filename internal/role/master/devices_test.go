package master

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

func TestDevicesAreCalledAsTheirTaskIs(t *testing.T) {
	task := cluster.Task{Job: "ps", Index: 3}
	for _, tt := range []struct{ name, typ, want string }{
		{"/job:ps/replica:0/task:3/device:CPU:1", "CPU", "/job:ps/replica:0/task:3/device:CPU:1"},
		{"/job:localhost/replica:0/task:0/device:CPU:0", "CPU", "/job:ps/replica:0/task:3/device:CPU:0"},
		{"/cpu:0", "CPU", "/job:ps/replica:0/task:3/device:CPU:0"},
		{"/device:GPU:0", "GPU", "/job:ps/replica:0/task:3/device:GPU:0"},
	} {
		d, err := onTask(task, &pb.DeviceAttributes{Name: tt.name, DeviceType: tt.typ, Incarnation: 7})
		if err != nil || d.attrs.Name != tt.want || d.name.String() != tt.want || d.attrs.Incarnation != 7 {
			t.Errorf("%s: got %v, %v; want %s", tt.name, d, err, tt.want)
		}
	}
	for _, name := range []string{"", "garbage", "/job:ps", "/device:CPU:*"} {
		if d, err := onTask(task, &pb.DeviceAttributes{Name: name}); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%q: got %v, %v; want InvalidArgument", name, d, err)
		}
	}
}

func TestFiltersChooseTasks(t *testing.T) {
	spec := cluster.Spec{"ps": cluster.Dense("a:1", "b:1"), "worker": cluster.Dense("c:1", "d:1")}
	self := cluster.Task{Job: "worker", Index: 1}
	for _, tt := range []struct {
		filters []string
		want    []string
	}{
		{nil, []string{"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"}},
		{[]string{"/job:ps"}, []string{"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "/job:worker/replica:0/task:1"}},
		{[]string{"/job:ps/task:0", "/job:worker/task:0"}, []string{"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"}},
		{[]string{"/task:0"}, []string{"/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"}},
		{[]string{"/device:GPU:0"}, []string{"/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"}},
		{[]string{"/job:nobody"}, []string{"/job:worker/replica:0/task:1"}},
	} {
		f, err := parseFilters(tt.filters)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, task := range f.tasks(spec.Tasks(), self) {
			got = append(got, task.String())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("filters %v: got %v, want %v", tt.filters, got, tt.want)
		}
	}
}
