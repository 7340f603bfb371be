package master_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/tensor"
)

// functions have nodes on all tasks of psWorker.
const functions = `
	func Plus(x: float, y: float) -> (z: float) {
	  s = TestAdd(x, y) device=/job:ps
	  z = TestAdd(s:z:0, y) device=/job:worker/task:1
	  return z=z:z:0
	}
	func First(x: float, y: float) -> (z: float) {
	  v = TestVar() device=/job:ps
	  z = TestAdd(x, v:n:0) device=/job:worker/task:1
	  return z=z:z:0 ^v=v
	}
	func Below(x: float, y: float) -> (b: bool) {
	  limit = Const() value=float[]{20}
	  b = Less(x, limit:output:0) T=float device=/job:worker/task:1
	  return b=b:z:0
	}
	func Step(x: float, y: float) -> (z: float, same: float) {
	  z = StatefulPartitionedCall(x, y) Tin=[float, float] Tout=[float] f=@Plus
	  return z=z:output:0 same=y
	}
	p = Placeholder() dtype=bool
	x = Const() value=float[]{1}
	y = Const() value=float[]{2}
`

func TestFunctionsOnSeveralTasks(t *testing.T) {
	c := psWorker(t)
	s := open(t, c, functions+`
		call = PartitionedCall(x, y) Tout=[float] f=@Plus
		after = TestAdd(call, y)
		if = If(p, x, y) Tout=[float] then_branch=@Plus else_branch=@First _lower_using_switch_merge=true
		loop = While(x, y) cond=@Below body=@Step _lower_using_switch_merge=true
		case = Case(index, x, y) Tout=[float] branches=[@First, @Plus] _lower_using_switch_merge=true
		index = Const() value=int32[]{7}
	`)
	truth := func(v bool) testcluster.Feeds { return testcluster.Feeds{"p:0": tensor.Scalar(v)} }
	for _, tt := range []struct {
		fetch string
		feeds testcluster.Feeds
		want  float32
	}{
		{"call:0", nil, 5}, {"after:0", nil, 7}, {"if:0", truth(true), 5}, {"if:0", truth(false), 2}, {"if:0", truth(false), 3},
		{"loop:0", nil, 21}, {"loop:1", nil, 2}, {"case:0", nil, 5},
		{"after:0", testcluster.Feeds{"call:0": tensor.Scalar(float32(10))}, 12},
	} {
		if got := run(t, s, tt.feeds, tt.fetch); got[0] != tt.want {
			t.Errorf("%s with %v is %v, want %v", tt.fetch, tt.feeds, got[0], tt.want)
		}
	}
}

// TestStateOfFunctionsStays checks that an extension does not move the state of functions that were
// lowered before.
func TestStateOfFunctionsStays(t *testing.T) {
	c := psWorker(t)
	const call = functions + "call = StatefulPartitionedCall(x, y) Tout=[float] f=@First\n"
	s := open(t, c, call)
	if got := run(t, s, nil, "call:0"); got[0] != 2 {
		t.Errorf("got %v, want 2", got[0])
	}
	if err := s.Extend(t.Context(), call+"more = TestAdd(call, y)", 4); err != nil {
		t.Fatal(err)
	}
	if got := run(t, s, nil, "more:0", "call:0"); got[0] != 5 || got[1] != 3 {
		t.Errorf("got %v, want 5 and 3", got)
	}
}

func TestFunctionalControlFlowOnDemand(t *testing.T) {
	graph := functions + "if = If(p, x, y) Tout=[float] then_branch=@First else_branch=@First _lower_using_switch_merge=true"
	c := psWorker(t)
	s := openWith(t, c, graph, &pb.ConfigProto{Experimental: &pb.ConfigProto_Experimental{DisableFunctionalOpsLowering: true}})
	run(t, s, testcluster.Feeds{"p:0": tensor.Scalar(true)}, "if:0")
	if n := testcluster.Count(c.Calls(), "RunGraph"); n != 0 {
		t.Errorf("the branch ran on other tasks")
	}
	run(t, open(t, c, graph), testcluster.Feeds{"p:0": tensor.Scalar(true)}, "if:0")
	if n := testcluster.Count(c.Calls(), "RunGraph"); n != 2 {
		t.Errorf("the branch ran on %d other tasks, want 2", n)
	}
}
