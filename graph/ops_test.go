package graph_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/graphtext"
	"github.com/weft-ml/weft/opdef"
)

// testOps are the operations that the tests of this package build graphs of, with their shape rules.
func testOps(t testing.TB) graphtext.Ops {
	t.Helper()
	ops, err := graphtext.ParseOps(opText)
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range shapeRules {
		ops[name].Shape = rule
	}
	return ops
}

const opText = `
	Const() -> (output: dtype) [value: tensor; dtype: type]
	Placeholder() -> (output: dtype) [dtype: type; shape: shape = <unknown>]
	NoOp()
	Identity(input: T) -> (output: T) [T: type]
	Add(x: T, y: T) -> (z: T) [T: {float, int32}]
	MatMul(a: T, b: T) -> (product: T) [T: {float, int32}; transpose_a: bool = false; transpose_b: bool = false]
	AddN(inputs: N * T) -> (sum: T) [N: int >= 1; T: type]
	MaxPool(input: float) -> (output: float) [ksize: list(int) >= 4; padding: {'SAME', 'VALID'}]
	Enter(data: T) -> (output: T) [T: type; frame_name: string]
	Exit(data: T) -> (output: T) [T: type]
	NextIteration(data: T) -> (output: T) [T: type]
	Merge(inputs: N * T) -> (output: T, value_index: int32) [T: type; N: int >= 1]
	Switch(data: T, pred: bool) -> (output_false: T, output_true: T) [T: type]
	LoopCond(input: bool) -> (output: bool)
	Less(x: T, y: T) -> (z: bool) [T: type]
	VariableV2() -> (ref: Ref(dtype)) [shape: shape; dtype: type] stateful
	Assign(ref: Ref(T), value: T) -> (output_ref: Ref(T)) [T: type]
	Split(x: T) -> (low: T, parts: n * T, high: float) [n: int >= 1; T: type]
	IdentityN(input: T) -> (output: T) [T: list(type) >= 1]
	PartitionedCall(args: Tin) -> (output: Tout) [Tin: list(type) >= 0; Tout: list(type) >= 0; f: func]
	Case(x: int32) [branches: list(func)]
	_Arg() -> (output: T) [T: type; index: int >= 0] stateful
	_Retval(input: T) [T: type; index: int >= 0] stateful
`

var shapeRules = map[string]opdef.ShapeFn{}
