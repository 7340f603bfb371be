package loopframe_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/graphtext"
)

func testOps(t testing.TB) graphtext.Ops {
	t.Helper()
	ops, err := graphtext.ParseOps(opText)
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

const opText = `
	Const() -> (output: dtype) [value: tensor; dtype: type]
	NoOp()
	Identity(input: T) -> (output: T) [T: type]
	Add(x: T, y: T) -> (z: T) [T: {float, int32}]
	Enter(data: T) -> (output: T) [T: type; frame_name: string]
	Exit(data: T) -> (output: T) [T: type]
	NextIteration(data: T) -> (output: T) [T: type]
	Merge(inputs: N * T) -> (output: T, value_index: int32) [T: type; N: int >= 1]
	Switch(data: T, pred: bool) -> (output_false: T, output_true: T) [T: type]
	LoopCond(input: bool) -> (output: bool)
	Less(x: T, y: T) -> (z: bool) [T: type]
`

const loop = `
a = Const() value=int32[]{0}
ten = Const() value=int32[]{10}
enter = Enter(a) T=int32 frame_name="f"
limit = Enter(ten) T=int32 frame_name="f"
merge = Merge(enter, next) N=2 T=int32
less = Less(merge, limit) T=int32
cond = LoopCond(less)
switch = Switch(merge, cond) T=int32
body = Identity(switch:1) T=int32
one = Const(^body) value=int32[]{1}
add = Add(body, one) T=int32
next = NextIteration(add) T=int32
exit = Exit(switch) T=int32
done = NoOp(^exit, ^a)
`
