package train_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
	"github.com/weft-ml/weft/train"
)

// rows returns an initializer that sets row i of a variable with two columns to 10i and 10i + 1.
// Each call of the initializer uses the next list of rows.
func rows(lists ...[]int32) train.Initializer {
	return func(s *op.Scope, shape tensor.Shape, dtype tensor.DType) op.Output {
		v := make([][]float32, len(lists[0]))
		for i, r := range lists[0] {
			v[i] = []float32{float32(10 * r), float32(10*r + 1)}
		}
		lists = lists[1:]
		return train.Values(v)(s, shape, dtype)
	}
}

// TestOnePart reads a variable in a single part as a whole.
func TestOnePart(t *testing.T) {
	s := newScope()
	p := train.NewPartitioned(s, "p", tensor.Shape{2, 2}, tensor.Float32, rows([]int32{0, 1}), 1)
	whole := p.Value(s)
	sess := session(t, s)
	run(t, sess, p.Parts[0].Initializer)
	out, err := sess.Run(t.Context(), nil, []op.Output{whole}, nil)
	if err != nil || fmt.Sprint(out[0].Go()) != "[[0 1] [10 11]]" {
		t.Errorf("got %v, %v", out, err)
	}
}

// TestLookups looks up rows and trains them. The result does not depend on how the rows are split.
func TestLookups(t *testing.T) {
	f32 := tensor.Float32
	for name, lookup := range map[string]func(s *op.Scope, ids op.Output, opts ...train.VariableOption) op.Output{
		"one variable": func(s *op.Scope, ids op.Output, opts ...train.VariableOption) op.Output {
			v := train.NewVariable(s, "w", tensor.Shape{7, 2}, f32, rows([]int32{0, 1, 2, 3, 4, 5, 6}), opts...)
			return train.EmbeddingLookup(s, []*train.Variable{v}, ids)
		},
		"several variables": func(s *op.Scope, ids op.Output, opts ...train.VariableOption) op.Output {
			init := rows([]int32{0, 3, 6}, []int32{1, 4}, []int32{2, 5})
			a := train.NewVariable(s, "a", tensor.Shape{3, 2}, f32, init, opts...)
			b := train.NewVariable(s, "b", tensor.Shape{2, 2}, f32, init, opts...)
			c := train.NewVariable(s, "c", tensor.Shape{2, 2}, f32, init, opts...)
			return train.EmbeddingLookup(s, []*train.Variable{a, b, c}, ids)
		},
		"one in parts": func(s *op.Scope, ids op.Output, opts ...train.VariableOption) op.Output {
			init := rows([]int32{0, 1, 2}, []int32{3, 4}, []int32{5, 6})
			return train.NewPartitioned(s, "w", tensor.Shape{7, 2}, f32, init, 3, opts...).Lookup(s, ids)
		},
	} {
		for _, opts := range [][]train.VariableOption{nil, {train.Resource()}} {
			s := newScope()
			ids := op.Placeholder(s, tensor.Int64, op.PlaceholderShape(tensor.MakePartial(-1, -1)))
			found := lookup(s, ids, opts...)
			update := train.Minimize(s, train.NewGradientDescent(1), op.Sum(s, found, op.Const(s, []int32{0, 1, 2})), nil)
			init := train.VariablesInitializer(s)
			sess := session(t, s)
			run(t, sess, init)
			feed, err := tensor.New([][]int64{{3, 0}, {6, 3}, {5, 2}})
			if err != nil {
				t.Fatal(err)
			}
			feeds := map[op.Output]tensor.Tensor{ids: feed}
			for step, want := range []any{
				[][][]float32{{{30, 31}, {0, 1}}, {{60, 61}, {30, 31}}, {{50, 51}, {20, 21}}},
				[][][]float32{{{28, 29}, {-1, 0}}, {{59, 60}, {28, 29}}, {{49, 50}, {19, 20}}},
			} {
				out, err := sess.Run(t.Context(), feeds, []op.Output{found}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := out[0].Go(); !reflect.DeepEqual(got, want) {
					t.Errorf("%s, step %d: found %v, want %v", name, step, got, want)
				}
				if _, err := sess.Run(t.Context(), feeds, nil, []*graph.Node{update}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestPartitioned(t *testing.T) {
	s := newScope()
	dev := s.WithDeviceFunc(train.ReplicaDeviceSetter(train.DeviceSetter{PSTasks: 2}))
	w := train.NewPartitioned(dev, "w", tensor.Shape{7, 2}, tensor.Float32, rows([]int32{0, 1, 2}, []int32{3, 4}, []int32{5, 6}), 3)
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range w.Parts {
		got = append(got, v.Name+v.Shape.String()+v.Handle.Node.Device)
	}
	want := "w/part_0[3,2]/job:ps/task:0 w/part_1[2,2]/job:ps/task:1 w/part_2[2,2]/job:ps/task:0"
	if have := strings.Join(got, " "); have != want {
		t.Errorf("the parts are %s, want %s", have, want)
	}
	slot := train.NewSlot(s, w.Parts[1], "Adam", train.Zeros)
	if slot.Name != "w/part_1/Adam" || slot.Part.Name != "w/Adam" || slot.Part.Offset != 3 {
		t.Errorf("a slot of a part is %s, %+v", slot.Name, slot.Part)
	}
	for _, parts := range []int{0, 8} {
		if s := newScope(); train.NewPartitioned(s, "w", tensor.Shape{7, 2}, tensor.Float32, train.Zeros, parts).Parts != nil || s.Err() == nil {
			t.Errorf("7 rows were split into %d parts", parts)
		}
	}
}

func TestPartitionedValue(t *testing.T) {
	s := newScope()
	w := train.NewPartitioned(s, "w", tensor.Shape{3, 2}, tensor.Float32, rows([]int32{0, 1}, []int32{2}), 2)
	whole := w.Value(s)
	init := train.VariablesInitializer(s)
	sess := session(t, s)
	run(t, sess, init)
	out, err := sess.Run(t.Context(), nil, []op.Output{whole}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out[0].Go(), [][]float32{{0, 1}, {10, 11}, {20, 21}}; !reflect.DeepEqual(got, any(want)) {
		t.Errorf("got %v, want %v", got, want)
	}
}
