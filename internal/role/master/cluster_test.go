package master_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/status"
)

// renamed returns the cluster of psWorker under other names. It leaves out the second worker.
func renamed(c *testcluster.Cluster) *pb.ClusterDef {
	spec := c.Spec()
	return &pb.ClusterDef{Job: []*pb.JobDef{
		{Name: "chief", Tasks: map[int32]string{3: spec["worker"][0]}},
		{Name: "store", Tasks: map[int32]string{0: spec["ps"][0]}},
	}}
}

func TestSessionBringsItsCluster(t *testing.T) {
	c := psWorker(t)
	s := openWith(t, c, `
		v = TestVar() device=/job:store
		w = TestAdd(v, v) device=/job:chief/task:3`, &pb.ConfigProto{ClusterDef: renamed(c)})
	for _, want := range []float32{2, 4} {
		if got := run(t, s, nil, "w:0"); got[0] != want {
			t.Errorf("got %v, want %v", got[0], want)
		}
	}
	of, err := s.Node.Master.ListDevices(t.Context(), &pb.ListDevicesRequest{SessionHandle: s.Handle})
	if err != nil {
		t.Fatal(err)
	}
	if got := deviceNames(of.LocalDevice); len(got) != 1 || got[0] != "/job:chief/replica:0/task:3/device:CPU:0" {
		t.Errorf("local devices %v", got)
	}
	if got := deviceNames(of.RemoteDevice); len(got) != 1 || got[0] != "/job:store/replica:0/task:0/device:CPU:0" {
		t.Errorf("remote devices %v", got)
	}
	// Such a session has private state.
	if got := run(t, open(t, c, "v = TestVar() device=/job:ps"), nil, "v:0"); got[0] != 1 {
		t.Errorf("another session sees %v, want 1", got[0])
	}
}

func TestClustersThatCannotBeBrought(t *testing.T) {
	c := psWorker(t)
	job := func(name string, tasks map[int32]string) *pb.JobDef { return &pb.JobDef{Name: name, Tasks: tasks} }
	self := c.Spec()["worker"][0]
	for _, tt := range []struct {
		jobs []*pb.JobDef
		text string
	}{
		{[]*pb.JobDef{job("a", map[int32]string{0: "elsewhere:1"})}, "The master (current machine) is not included in the provided cluster_def."},
		{[]*pb.JobDef{job("a", map[int32]string{0: self, 1: self})}, "Found multiple matching tasks that correspond to to the master."},
		{[]*pb.JobDef{job("a", map[int32]string{0: self, 1: "x:1", 2: "x:1"})}, "have the same address"},
		{[]*pb.JobDef{job("worker", map[int32]string{0: self})}, "The ClusterSpec names the job and task index to be the same names that were provided when the server booted. This is currently not allowed. Job: worker, task index: 0"},
		{[]*pb.JobDef{job("a", map[int32]string{0: self}), job("a", map[int32]string{1: "x:1"})}, "Duplicate job ID in cluster specification"},
		{[]*pb.JobDef{job("a", map[int32]string{0: self, 1: "garbage"})}, "as a host-port pair"},
	} {
		_, err := c.Session(t.Context(), c.Node("worker", 0), one, &pb.ConfigProto{ClusterDef: &pb.ClusterDef{Job: tt.jobs}})
		expect(t, err, status.InvalidArgument, tt.text)
	}
}

func TestClusterWithSharedState(t *testing.T) {
	c := psWorker(t)
	run(t, open(t, c, "v = TestVar() device=/job:ps"), nil, "v:0")
	s := openWith(t, c, "v = TestVar() device=/job:store", &pb.ConfigProto{
		ClusterDef:   renamed(c),
		Experimental: &pb.ConfigProto_Experimental{ShareSessionStateInClusterspecPropagation: true},
	})
	if got := run(t, s, nil, "v:0"); got[0] != 2 {
		t.Errorf("got %v, want 2", got[0])
	}
}
