package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// array is a TensorArray of any version, with its flow.
type array struct {
	s            *scope
	version      string
	handle, flow op.Output
}

func newArray(s *scope, version string, size int32) array {
	n := s.Add("TensorArray"+version, []op.Arg{op.One(op.Const(s, size))}, opdef.Attrs{"dtype": tensor.Float64, "clear_after_read": false})
	a := array{s: s, version: version, handle: n.Out(0)}
	if a.flow = op.Const(s.WithControlDependencies(n), float32(0)); version == "V3" {
		a.flow = n.Out(1)
	}
	return a
}

func (a array) do(name string, attrs opdef.Attrs, args ...op.Output) op.Output {
	list := []op.Arg{op.One(a.handle)}
	for _, o := range args {
		list = append(list, op.One(o))
	}
	n := a.s.Add("TensorArray"+name+a.version, append(list, op.One(a.flow)), attrs)
	if n == nil {
		return op.Output{}
	}
	return n.Out(0)
}

func (a array) change(name string, args ...op.Output) array {
	a.flow = a.do(name, nil, args...)
	return a
}

func (a array) get(name string, args ...op.Output) op.Output {
	return a.do(name, opdef.Attrs{"dtype": tensor.Float64}, args...)
}

func TestTensorArrays(t *testing.T) {
	for _, v := range []string{"", "V2", "V3"} {
		checkRules(t, []ruleCase{
			{"TensorArrayWrite" + v, []input{in(3), in(3)}, func(s *scope, x []op.Output) []op.Output {
				zero, one := op.Const(s, int32(0)), op.Const(s, int32(1))
				a := newArray(s, v, 2).change("Write", zero, op.Square(s, x[0])).change("Write", one, x[1])
				return outs{op.Mul(s, a.get("Read", zero), a.get("Read", one)), op.Sin(s, a.get("Gather", ints(s, 1, 0)))}
			}},
			{"TensorArrayScatter" + v, []input{in(3, 2)}, func(s *scope, x []op.Output) []op.Output {
				a := newArray(s, v, 3).change("Scatter", ints(s, 2, 0, 1), x[0])
				return outs{op.Square(s, a.get("Gather", ints(s, 0, 2))), a.get("Read", op.Const(s, int32(2)))}
			}},
			{"TensorArraySplit" + v, []input{in(5, 2)}, func(s *scope, x []op.Output) []op.Output {
				a := newArray(s, v, 3).change("Split", x[0], op.Const(s, []int64{1, 3, 1}))
				return outs{op.Square(s, a.get("Read", op.Const(s, int32(1)))), op.Sin(s, a.get("Concat"))}
			}},
		})
		markChecked("TensorArrayRead"+v, "TensorArrayGather"+v, "TensorArrayConcat"+v)
	}
}

// TestTensorArraysInLoops is a recurrent network over the rows of a tensor.
func TestTensorArraysInLoops(t *testing.T) {
	checkRules(t, []ruleCase{{"while/TensorArray", []input{in(3, 2), in(2, 2)}, func(s *scope, x []op.Output) []op.Output {
		source := newArray(s, "V3", 3).change("Scatter", ints(s, 0, 1, 2), x[0])
		sink := newArray(s, "V3", 3)
		last := times(s, op.Const(s, int32(3)), outs{op.Const(s, [][]float64{{0.1, 0.2}}), sink.flow},
			func(s *scope, i op.Output, v outs) outs {
				from, to := source, sink
				from.s, to.s, to.flow = s, s, v[1]
				row := op.Reshape(s, from.get("Read", i), ints(s, 1, 2))
				h := op.Tanh(s, op.MatMul(s, op.AddV2(s, row, v[0]), x[1]))
				return outs{h, to.change("Write", i, h).flow}
			}, op.ShapeInvariants(tensor.MakePartial(), tensor.PartialShape{}, tensor.MakePartial()))
		sink.flow = last[1]
		return outs{sink.get("Gather", ints(s, 0, 1, 2)), last[0]}
	}}})
}

func TestTensorLists(t *testing.T) {
	f64 := tensor.Float64
	none := func(s *scope) op.Output { return op.EmptyTensorList(s, ints(s, 2), op.Const(s, int32(-1)), f64) }
	checkRules(t, []ruleCase{
		{"TensorListPushBack", []input{in(2), in(2)}, func(s *scope, x []op.Output) []op.Output {
			list := op.TensorListPushBack(s, op.TensorListPushBack(s, none(s), x[0]), op.Square(s, x[1]))
			rest, top := op.TensorListPopBack(s, list, ints(s, 2), f64)
			_, next := op.TensorListPopBack(s, rest, ints(s, 2), f64)
			return outs{op.Mul(s, top, next)}
		}},
		{"TensorListPopBack", []input{in(2), in(2)}, func(s *scope, x []op.Output) []op.Output {
			list := op.TensorListPushBack(s, op.TensorListPushBack(s, none(s), x[0]), op.Square(s, x[1]))
			_, top := op.TensorListPopBack(s, list, ints(s, 2), f64)
			return outs{op.Sin(s, top), op.TensorListStack(s, list, ints(s, 2), f64)}
		}},
		{"TensorListStack", []input{in(3, 2)}, func(s *scope, x []op.Output) []op.Output {
			list := op.TensorListFromTensor(s, x[0], ints(s, 2))
			return outs{op.Square(s, op.TensorListStack(s, list, ints(s, 2), f64))}
		}},
		{"TensorListFromTensor", []input{in(3, 2), in(2)}, func(s *scope, x []op.Output) []op.Output {
			list := op.TensorListFromTensor(s, x[0], ints(s, 2))
			item := op.TensorListGetItem(s, list, op.Const(s, int32(1)), ints(s, 2), f64)
			list = op.TensorListSetItem(s, list, op.Const(s, int32(0)), op.Mul(s, item, x[1]))
			return outs{op.TensorListStack(s, op.TensorListResize(s, list, op.Const(s, int32(2))), ints(s, 2), f64)}
		}},
		{"TensorListGather", []input{in(3, 2), in(2, 2)}, func(s *scope, x []op.Output) []op.Output {
			list := op.TensorListFromTensor(s, x[0], ints(s, 2))
			list = op.TensorListScatterIntoExistingList(s, list, x[1], ints(s, 2, 0))
			return outs{op.Square(s, op.TensorListGather(s, list, ints(s, 0, 1), ints(s, 2), f64))}
		}},
		{"TensorListScatter", []input{in(3, 2)}, func(s *scope, x []op.Output) []op.Output {
			a := op.TensorListScatter(s, x[0], ints(s, 2, 0, 1), ints(s, 2))
			b := op.TensorListScatterV2(s, x[0], ints(s, 1, 0, 2), ints(s, 2), op.Const(s, int32(-1)))
			return outs{op.Mul(s, op.TensorListStack(s, a, ints(s, 2), f64), op.TensorListStack(s, b, ints(s, 2), f64))}
		}},
		{"TensorListSplit", []input{in(5, 2)}, func(s *scope, x []op.Output) []op.Output {
			list := op.TensorListSplit(s, x[0], ints(s, -1, 2), op.Const(s, []int64{2, 3}))
			a, _ := op.TensorListConcat(s, list, f64)
			b, _ := op.TensorListConcatV2(s, list, ints(s, -1, 2), op.Const(s, []int64{2, 3}), f64)
			return outs{op.Square(s, a), op.Sin(s, b)}
		}},
	})
	markChecked("TensorListGetItem", "TensorListSetItem", "TensorListResize", "TensorListScatterIntoExistingList", "TensorListScatterV2",
		"TensorListConcat", "TensorListConcatV2")
}
