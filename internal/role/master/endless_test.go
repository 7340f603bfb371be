package master_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	_ "github.com/weft-ml/weft/internal/kernels/function"
	_ "github.com/weft-ml/weft/internal/kernels/mathops"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/testcluster"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// endlessGraphs returns graphs with a node y that is never computed. Each of them calls TestTick
// repeatedly, except the one of control flow alone.
func endlessGraphs() map[string]string {
	const (
		functions = `
			func Always(x: float) -> (y: bool) {
			  y = Const() value=bool[]{true}
			  return y=y:output:0
			}
			func Body(x: float) -> (y: float) {
			  y = TestTick(x)
			  return y=y:y:0
			}
			x = Const() value=float[]{1}`
		twice = `
			func F(x: float, depth: int32) -> (y: float) {
			  one = Const() value=int32[]{1}
			  next = Sub(depth, one:output:0) T=int32
			  zero = Const() value=int32[]{0}
			  more = Less(zero:output:0, next:z:0) T=int32
			  y = If(more:z:0, x, next:z:0) Tcond=bool Tin=[float, int32] Tout=[float] then_branch=@Twice else_branch=@Once
			  return y=y:output:0
			}
			func Once(x: float, depth: int32) -> (y: float) {
			  y = TestTick(x)
			  return y=y:y:0
			}
			func Twice(x: float, depth: int32) -> (y: float) {
			  a = StatefulPartitionedCall(x, depth) Tin=[float, int32] Tout=[float] f=@F
			  b = StatefulPartitionedCall(a:output:0, depth) Tin=[float, int32] Tout=[float] f=@F
			  return y=b:output:0
			}
			x = Const() value=float[]{1}
			n = Const() value=int32[]{100}`
	)
	return map[string]string{
		controlFlow: `
			x = Const() value=float[]{1}
			true = Const() value=bool[]{true}
			always = Enter(true) frame_name="f" is_constant=true
			e = Enter(x) frame_name="f"
			m = Merge(e, n)
			l = LoopCond(always)
			s = Switch(m, l)
			n = NextIteration(s:1)
			y = Exit(s)`,
		"frame": `
			x = Const() value=float[]{1}
			true = Const() value=bool[]{true}
			always = Enter(true) frame_name="f" is_constant=true
			e = Enter(x) frame_name="f"
			m = Merge(e, n)
			l = LoopCond(always)
			s = Switch(m, l)
			b = TestTick(s:1) device=/job:ps
			n = NextIteration(b)
			y = Exit(s)`,
		"While":         functions + "\ny = While(x) cond=@Always body=@Body",
		"While lowered": functions + "\ny = While(x) cond=@Always body=@Body _lower_using_switch_merge=true",
		"recursion":     twice + "\ny = StatefulPartitionedCall(x, n) Tout=[float] f=@F",
		"recursion elsewhere": twice + `
			ps = Const() value=string[]{"/job:ps"}
			y = RemoteCall(ps, x, n) Tout=[float] f=@F`,
	}
}

const controlFlow = "control flow alone"

// TestEndlessSteps cancels steps that would run forever, and checks that nothing of them goes on:
// the test hangs if a goroutine does not block.
func TestEndlessSteps(t *testing.T) {
	for name, graph := range endlessGraphs() {
		if name != controlFlow {
			t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { endless(t, graph) }) })
		}
	}
}

// TestEndlessStepsEndAtTheirLimit runs them with a timeout. Nothing waits for the end of such a
// step, so it has no timer, and the clock of a synctest bubble would not advance.
func TestEndlessStepsEndAtTheirLimit(t *testing.T) {
	tick := testcluster.Op("TestTick", []string{"x: float"}, []string{"y: float"}, kernel.Stateless(func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar(tensor.Value[float32](c.Input(0))))
		return nil
	}))
	c := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"ps": 1, "worker": 1}, Kernels: testcluster.Kernels(tick)})
	for name, graph := range endlessGraphs() {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, c, graph).Step(t.Context(), nil, []string{"y"}, nil, &pb.RunOptions{TimeoutInMs: 20})
			expect(t, err, status.DeadlineExceeded, "Operation timed out.")
		})
	}
}

func endless(t *testing.T, graph string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ticks atomic.Int64
	tick := testcluster.Op("TestTick", []string{"x: float"}, []string{"y: float"}, kernel.Stateless(func(c *kernel.Context) error {
		if ticks.Add(1) == 300 {
			cancel()
		}
		c.SetOutput(0, tensor.Scalar(tensor.Value[float32](c.Input(0))))
		return nil
	}))
	c := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"ps": 1, "worker": 1}, Kernels: testcluster.Kernels(tick)})
	_, err := open(t, c, graph).Run(ctx, nil, []string{"y"})
	expect(t, err, status.Cancelled)
	synctest.Wait()
	if n := ticks.Load(); n < 300 {
		t.Errorf("the step ended after %d iterations", n)
	}
}
