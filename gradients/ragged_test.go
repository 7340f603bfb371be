package gradients_test

import (
	"testing"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func TestRaggedTensors(t *testing.T) {
	f64 := tensor.Float64
	splits := func(s *scope, v ...int64) op.Output { return op.Const(s, v) }
	checkRules(t, []ruleCase{
		{"RaggedGather", []input{in(4, 2)}, one(func(s *scope, x op.Output) op.Output {
			_, y := op.RaggedGather(s, outs{splits(s, 0, 3, 3, 4)}, x, ints(s, 2, 0, 0), 1)
			return y
		})},
		{"RaggedGather/two splits", []input{in(5)}, one(func(s *scope, x op.Output) op.Output {
			_, y := op.RaggedGather(s, outs{splits(s, 0, 2, 3), splits(s, 0, 2, 4, 5)}, x, op.Const(s, [][]int32{{1, 0}, {0, 1}}), 3)
			return op.Square(s, y)
		})},
		{"RaggedTensorToSparse", []input{in(4)}, one(func(s *scope, x op.Output) op.Output {
			_, y, _ := op.RaggedTensorToSparse(s, outs{splits(s, 0, 3, 3, 4)}, x)
			return op.Square(s, y)
		})},
		{"RaggedTensorToSparse/rows", []input{in(2, 3)}, one(func(s *scope, x op.Output) op.Output {
			_, y, _ := op.RaggedTensorToSparse(s, outs{splits(s, 0, 0, 2)}, x)
			return y
		})},
		{"RaggedTensorToTensor", []input{in(4), in()}, two(func(s *scope, x, y op.Output) op.Output {
			return op.RaggedTensorToTensor(s, ints(s, 3, 4), x, y, outs{splits(s, 0, 3, 3, 4)}, []string{"ROW_SPLITS"})
		})},
		{"RaggedTensorToTensor/cut off", []input{in(4, 2), in(2)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.RaggedTensorToTensor(s, ints(s, -1, 2, 2), x, y, outs{op.Const(s, int64(3)), splits(s, 0, 0, 0, 2)},
				[]string{"FIRST_DIM_SIZE", "VALUE_ROWIDS"})
		})},
		{"CompositeTensorVariantFromComponents", []input{in(4), in(2)}, two(func(s *scope, x, y op.Output) op.Output {
			return throughComposite(s, op.Square(s, x), y)
		})},
		{"CompositeTensorVariantToComponents", []input{in(4), in(2)}, two(func(s *scope, x, y op.Output) op.Output {
			return op.Square(s, throughComposite(s, y, x))
		})},
		{"RaggedTensorToVariant", []input{in(4)}, one(func(s *scope, x op.Output) op.Output {
			rows := op.RaggedTensorToVariant(s, outs{splits(s, 0, 3, 3, 4)}, x, true)
			_, y := op.RaggedTensorFromVariant(s, rows, 0, 1, f64)
			return op.Square(s, y)
		})},
		{"RaggedTensorFromVariant", []input{in(4)}, one(func(s *scope, x op.Output) op.Output {
			whole := op.RaggedTensorToVariant(s, outs{splits(s, 0, 3, 3, 4)}, x, false)
			_, y := op.RaggedTensorFromVariant(s, whole, 1, 1, f64)
			return op.Square(s, y)
		})},
		{"RaggedTensorFromVariant/no splits", []input{in(3, 2)}, one(func(s *scope, x op.Output) op.Output {
			rows := op.RaggedTensorToVariant(s, nil, x, true)
			_, y := op.RaggedTensorFromVariant(s, rows, 0, 1, f64)
			return op.Square(s, y)
		})},
		{"RaggedFillEmptyRows", []input{in(3), in()}, two(func(s *scope, x, y op.Output) op.Output {
			_, v, _, _ := op.RaggedFillEmptyRows(s, splits(s, 0, 2, 2), x, op.Const(s, int64(4)), y)
			return op.Square(s, v)
		})},
	})
}

func TestContainers(t *testing.T) {
	f64 := tensor.Float64
	key := func(s *scope, k int32) op.Output { return op.Const(s, k) }
	checkRules(t, []ruleCase{
		{"OptionalFromValue", []input{in(2), in(3)}, func(s *scope, x []op.Output) outs {
			o := op.OptionalFromValue(s, outs{op.Square(s, x[0]), x[1]})
			return op.OptionalGetValue(s, o, []tensor.DType{f64, f64}, []tensor.PartialShape{tensor.MakePartial(2), tensor.MakePartial(3)})
		}},
		{"OptionalGetValue", []input{in(2)}, func(s *scope, x []op.Output) outs {
			o := op.OptionalFromValue(s, x)
			get := func() op.Output {
				return op.OptionalGetValue(s, o, []tensor.DType{f64}, []tensor.PartialShape{tensor.MakePartial(2)})[0]
			}
			return outs{op.Mul(s, get(), op.Sin(s, get()))}
		}},
		{"TensorMapInsert", []input{in(2), in(3)}, func(s *scope, x []op.Output) outs {
			m := op.TensorMapInsert(s, op.TensorMapInsert(s, op.EmptyTensorMap(s), key(s, 1), x[0]), key(s, 2), op.Square(s, x[1]))
			return outs{op.Square(s, op.TensorMapLookup(s, m, key(s, 1), f64)), op.TensorMapLookup(s, m, key(s, 2), f64)}
		}},
		{"TensorMapLookup", []input{in(2)}, func(s *scope, x []op.Output) outs {
			m := op.TensorMapInsert(s, op.EmptyTensorMap(s), key(s, 1), x[0])
			return outs{op.TensorMapLookup(s, m, key(s, 1), f64)}
		}},
		{"TensorMapLookup/twice", []input{in(2)}, func(s *scope, x []op.Output) outs {
			m := op.TensorMapInsert(s, op.EmptyTensorMap(s), key(s, 1), x[0])
			return outs{op.Square(s, op.TensorMapLookup(s, m, key(s, 1), f64)), op.TensorMapLookup(s, m, key(s, 1), f64)}
		}},
		{"TensorMapInsert/never looked up", []input{in(2), in(3)}, func(s *scope, x []op.Output) outs {
			m := op.TensorMapInsert(s, op.TensorMapInsert(s, op.EmptyTensorMap(s), key(s, 1), x[0]), key(s, 2), x[1])
			return outs{op.TensorMapLookup(s, m, key(s, 1), f64)}
		}},
		{"TensorMapErase", []input{in(2), in(3)}, func(s *scope, x []op.Output) outs {
			m := op.TensorMapInsert(s, op.TensorMapInsert(s, op.EmptyTensorMap(s), key(s, 1), x[0]), key(s, 2), x[1])
			return outs{op.Sin(s, op.TensorMapLookup(s, op.TensorMapErase(s, m, key(s, 2), f64), key(s, 1), f64))}
		}},
	})
}

// throughComposite composes a variant of x and y and returns the component x.
func throughComposite(s *scope, x, y op.Output) op.Output {
	variant := s.Add("CompositeTensorVariantFromComponents", []op.Arg{op.Many(outs{ints(s, 1), y, x})}, opdef.Attrs{"metadata": ""})
	return s.Add("CompositeTensorVariantToComponents", []op.Arg{op.One(variant.Out(0))}, opdef.Attrs{
		"metadata": "", "Tcomponents": []tensor.DType{tensor.Int32, y.DType(), x.DType()},
	}).Out(2)
}
