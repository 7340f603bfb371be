package graph_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// testOps returns the operations of the test graphs, with their shape functions.
func testOps(t testing.TB) graphtext.Ops {
	t.Helper()
	ops, err := graphtext.ParseOps(opText)
	if err != nil {
		t.Fatal(err)
	}
	for name, rule := range shapeFns {
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

	VarHandleOp() -> (resource: resource) [dtype: type; shape: shape] stateful
	ReadVariableOp(resource: resource) -> (value: dtype) [dtype: type] stateful
	VariableShape(input: resource) -> (output: out_type) [out_type: type = int32]
	Shape(input: T) -> (output: out_type) [T: type; out_type: type = int32]
	ShapeN(input: N * T) -> (output: N * out_type) [N: int >= 1; T: type; out_type: type = int32]
	Rank(input: T) -> (output: int32) [T: type]
	Size(input: T) -> (output: out_type) [T: type; out_type: type = int32]
	Cast(x: SrcT) -> (y: DstT) [SrcT: type; DstT: type]
	Reshape(tensor: T, shape: Tshape) -> (output: T) [T: type; Tshape: type]
	Pack(values: N * T) -> (output: T) [N: int >= 1; T: type; axis: int = 0]
	Concat(concat_dim: int32, values: N * T) -> (output: T) [N: int >= 2; T: type]
	ConcatV2(values: N * T, axis: int32) -> (output: T) [N: int >= 2; T: type]
	Slice(input: T, begin: I, size: I) -> (output: T) [T: type; I: type]
	StridedSlice(input: T, begin: I, end: I, strides: I) -> (output: T) [T: type; I: type; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: int = 0; shrink_axis_mask: int = 0]
	Gather(params: P, indices: I) -> (output: P) [P: type; I: type]
	GatherV2(params: P, indices: I, axis: int32) -> (output: P) [P: type; I: type; batch_dims: int = 0]
	Fill(dims: I, value: T) -> (output: T) [T: type; I: type]
	ExpandDims(input: T, dim: int32) -> (output: T) [T: type]
	Squeeze(input: T) -> (output: T) [T: type; squeeze_dims: list(int) = []]
	Range(start: T, limit: T, delta: T) -> (output: T) [T: type]
	Sub(x: T, y: T) -> (z: T) [T: type]
	Mul(x: T, y: T) -> (z: T) [T: type]
	FloorDiv(x: T, y: T) -> (z: T) [T: type]
	FloorMod(x: T, y: T) -> (z: T) [T: type]
	Maximum(x: T, y: T) -> (z: T) [T: type]
	Minimum(x: T, y: T) -> (z: T) [T: type]
	Prod(input: T, indices: I) -> (output: T) [T: type; I: type; keep_dims: bool = false]
	Sum(input: T, indices: I) -> (output: T) [T: type; I: type; keep_dims: bool = false]
	Max(input: T, indices: I) -> (output: T) [T: type; I: type; keep_dims: bool = false]
	Min(input: T, indices: I) -> (output: T) [T: type; I: type; keep_dims: bool = false]
	Unknown(input: T) -> (output: T) [T: type]
	Double(input: T) -> (output: T) [T: type]
	ScalarSum(input: T, axis: int32) -> (output: T) [T: type]
`

// shapeFns are shape functions that use all features of opdef.ShapeContext.
var shapeFns = map[string]opdef.ShapeFn{
	"Const": func(c *opdef.ShapeContext) error {
		c.SetAll(c.Attrs.Tensor("value").Shape().Partial())
		return nil
	},
	"Placeholder": opdef.AttrShape, "VariableV2": opdef.AttrShape,
	"Identity": opdef.SameShape, "Enter": opdef.SameShape, "Exit": opdef.SameShape, "NextIteration": opdef.SameShape,
	"LoopCond": opdef.SameShape, "Cast": opdef.SameShape, "Switch": opdef.SameShape,
	"Add": opdef.BroadcastShape, "Less": opdef.BroadcastShape, "Mul": opdef.BroadcastShape,
	"Reshape": opdef.ValueShape(1), "Fill": opdef.ValueShape(0),
	"MatMul": func(c *opdef.ShapeContext) error {
		a, err := opdef.WithRank(c.In[0], 2)
		if err != nil {
			return err
		}
		b, err := opdef.WithRank(c.In[1], 2)
		if err != nil {
			return err
		}
		if _, err := opdef.MergeDims(a.Dim(1), b.Dim(0)); err != nil {
			return err
		}
		c.SetAll(tensor.MakePartial(a.Dim(0), b.Dim(1)))
		return nil
	},
	"Shape": func(c *opdef.ShapeContext) error {
		c.SetAll(tensor.MakePartial(int64(c.In[0].Rank())))
		return nil
	},
	"VarHandleOp": func(c *opdef.ShapeContext) error {
		c.SetAll(tensor.MakePartial())
		c.OutHandles[0] = []tensor.HandleElem{{DType: c.Attrs.Type("dtype"), Shape: c.Attrs.Shape("shape")}}
		return nil
	},
	"ReadVariableOp": func(c *opdef.ShapeContext) error {
		if h := c.InHandles[0]; len(h) > 0 {
			c.Out[0] = h[0].Shape
		}
		return nil
	},
	"Double": func(c *opdef.ShapeContext) error {
		s := c.In[0]
		if s.Rank() != 1 {
			return nil
		}
		c.SetAll(tensor.MakePartial(max(-1, 2*s.Dim(0))))
		return nil
	},
	"ScalarSum": func(c *opdef.ShapeContext) error {
		axis, ok := c.ScalarValue(1)
		if ok && c.In[0].RankKnown() && axis >= int64(c.In[0].Rank()) {
			return status.InvalidArgumentf("Dimension (%d) must be in the range [0, %d)", axis, c.In[0].Rank())
		}
		c.SetAll(tensor.MakePartial())
		return nil
	},
}
