package master_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

var (
	ps      = cluster.Task{Job: "ps"}
	worker1 = cluster.Task{Job: "worker", Index: 1}
)

// withReleases starts a cluster in which a task of Weft is the master of tasks of old releases.
func withReleases(t *testing.T, of map[cluster.Task]peer.Release) *testcluster.Cluster {
	t.Helper()
	return testcluster.New(t, testcluster.Options{
		Jobs: map[string]int{"ps": 1, "worker": 2}, Releases: of,
		Kernels: testcluster.Kernels(testcluster.Op("TestBelow", []string{"x: float"}, []string{"y: bool"}, kernel.Stateless(below))),
	})
}

// loop counts from 1 to 4 on worker 1, by a body on the parameter server.
const loop = one + `
	first = TestAdd(a, a) device=/job:ps
	e = Enter(first) frame_name="outer" device=/job:worker/task:1
	m = Merge(e, next) device=/job:worker/task:1
	below = TestBelow(m) device=/job:worker/task:1
	cond = LoopCond(below) device=/job:worker/task:1
	s = Switch(m, cond) device=/job:worker/task:1
	step = Const(^s) value=float[]{1} device=/job:ps
	add = TestAdd(s:1, step) device=/job:ps
	next = NextIteration(add) device=/job:worker/task:1
	x = Exit(s) device=/job:worker/task:1
	y = TestAdd(x, a)`

// below reports whether a number is less than 4.
func below(c *kernel.Context) error {
	c.SetOutput(0, tensor.Scalar(tensor.Value[float32](c.Input(0)) < 4))
	return nil
}

func TestTasksOfOldReleases(t *testing.T) {
	for _, of := range []map[cluster.Task]peer.Release{
		{ps: peer.TF012}, {worker1: peer.TF012}, {ps: peer.TF012, worker1: peer.TF012},
		{ps: peer.TF10, worker1: peer.TF10}, {ps: peer.TF14}, {worker1: peer.TF14}, {ps: peer.TF15, worker1: peer.TF19},
		{ps: peer.TF19}, {ps: peer.TF113}, {ps: peer.TF113, worker1: peer.TF113}, {ps: peer.TF23}, {},
	} {
		c := withReleases(t, of)
		s := open(t, c, loop)
		for range 2 {
			if got := run(t, s, nil, "y:0"); got[0] != 5 {
				t.Errorf("%v: got %v", of, got)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("%v: %v", of, err)
		}
		for task, release := range of {
			if n := c.Graphs(task); release.Has(peer.NoWorkerSessions) && n != 0 {
				t.Errorf("%v: %d graphs are left on %v after the session", of, n, task)
			}
		}
	}
}

// A session that needs what a release lacks names the task and the release.
func TestReleaseThatLacksSomething(t *testing.T) {
	c := withReleases(t, map[cluster.Task]peer.Release{ps: peer.TF14})
	_, err := c.Session(t.Context(), c.Node("worker", 0), one, &pb.ConfigProto{IsolateSessionState: true})
	expect(t, err, status.Unimplemented)
	for _, want := range []string{"/job:ps/replica:0/task:0", "TensorFlow 1.4", "isolate_session_state"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// The error of a step names its operation in the form that the client's release searches for.
func TestErrorsForOldClients(t *testing.T) {
	s := open(t, psWorker(t), one+`
		b = TestFail(a) device=/job:ps code=9 message="no luck"`)
	ctx := peer.NewContext(t.Context(), peer.TF14)
	_, err := s.Run(ctx, nil, []string{"b:0"})
	expect(t, err, status.FailedPrecondition,
		"From /job:ps/replica:0/task:0:\nno luck\n\t [[Node: b = TestFail[code=9, message=\"no luck\", "+
			"_device=\"/job:ps/replica:0/task:0/device:CPU:0\"](a)]]")
}
