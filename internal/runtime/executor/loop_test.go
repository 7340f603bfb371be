package executor_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/runtime/executor"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestLoop(t *testing.T) {
	for _, parallel := range []int{0, 1, 2, 10, 1 << 30} {
		for _, limit := range []int64{0, 1, 2, 9, 100} {
			b := newBuilder(t)
			b.ret(0, b.countTo("f", parallel, b.number(0), b.number(limit), b.number(1)))
			e := b.compile()
			for range 2 {
				rets, err := call(t, e, 1)
				if err != nil {
					t.Fatal(err)
				}
				wantNumber(t, &rets[0], limit)
			}
		}
	}
}

// TestNestedLoops sums i*j over all i, j below 7.
func TestNestedLoops(t *testing.T) {
	for _, parallel := range []int{1, 3, 10} {
		for _, op := range []string{"Add2", "AddLater"} {
			b := newBuilder(t)
			zero, one, seven := b.number(0), b.number(1), b.number(7)
			oneOut, sevenOut, zeroOut := b.enter("out", one, constEnter), b.enter("out", seven, constEnter), b.enter("out", zero, constEnter)
			sum := b.loop("out", parallel, []graph.Output{zero, zero},
				func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], sevenOut).Out(0) },
				func(v []graph.Output) []graph.Output {
					i, sum := v[0], v[1]
					iIn, oneIn, sevenIn := b.enter("in", i, constEnter), b.enter("in", oneOut, constEnter), b.enter("in", sevenOut, constEnter)
					inner := b.loop("in", parallel, []graph.Output{zeroOut, sum},
						func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], sevenIn).Out(0) },
						func(v []graph.Output) []graph.Output {
							j, sum := v[0], v[1]
							product := b.add("", "Mul2", nil, iIn, j).Out(0)
							return []graph.Output{b.sum(j, oneIn), b.add("", op, nil, sum, product).Out(0)}
						})
					return []graph.Output{b.sum(i, oneOut), inner[1]}
				})[1]
			b.ret(0, sum)
			wantNumber(t, &b.run(1)[0], 21*21)
		}
	}
}

// TestLoopOnDeadBranch has a loop on the branch of a condition that is not taken.
func TestLoopOnDeadBranch(t *testing.T) {
	for _, pred := range []bool{true, false} {
		b := newBuilder(t)
		onFalse, onTrue := b.sw(b.number(3), b.constant(tensor.Scalar(pred)))
		counted := b.countTo("f", 4, onTrue, b.sum(onTrue, b.number(10)), b.number(1))
		m := b.merge(2, onFalse, counted)
		b.ret(0, m.Out(0))
		after := b.number(5)
		b.ConnectControl(m, after.Node)
		b.ret(1, after)
		e := b.compile()
		for range 2 {
			rets, err := call(t, e, 2)
			if err != nil {
				t.Fatal(err)
			}
			want := int64(3)
			if pred {
				want = 13
			}
			wantNumber(t, &rets[0], want)
			wantNumber(t, &rets[1], 5)
		}
	}
}

// TestConditionInLoop adds i to a sum where i < 5 and doubles it otherwise.
func TestConditionInLoop(t *testing.T) {
	b := newBuilder(t)
	limit, one, five := b.enter("f", b.number(10), constEnter), b.enter("f", b.number(1), constEnter), b.enter("f", b.number(5), constEnter)
	out := b.loop("f", 10, []graph.Output{b.number(0), b.number(0)},
		func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], limit).Out(0) },
		func(v []graph.Output) []graph.Output {
			pred := b.add("", "Less2", nil, v[0], five).Out(0)
			double, _ := b.sw(v[1], pred)
			_, add := b.sw(v[1], pred)
			_, i := b.sw(v[0], pred)
			m := b.merge(2, b.sum(double, double), b.sum(add, i))
			return []graph.Output{b.sum(v[0], one), m.Out(0)}
		})
	b.ret(0, out[1])
	wantNumber(t, &b.run(1)[0], 10<<5)
}

// TestOrderAfterLoop checks that control edges from an Exit work, and that a loop ends if its
// result has no consumer.
func TestOrderAfterLoop(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	init := b.add("", "AssignRef", nil, v, b.number(0))
	one := b.enter("f", b.number(1), constEnter)
	ref := b.add("", "RefEnter", opdef.Attrs{"T": tensor.Int64, "frame_name": "f", "is_constant": true}, v)
	b.ConnectControl(init, ref)
	limit := b.enter("f", b.number(10), constEnter)
	exit := b.loop("f", 1, []graph.Output{b.number(0)},
		func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], limit).Out(0) },
		func(v []graph.Output) []graph.Output {
			add := b.add("", "AssignAddRef", nil, ref.Out(0), one)
			b.ConnectControl(v[0].Node, add)
			next := b.sum(v[0], one)
			b.ConnectControl(add, next.Node)
			return []graph.Output{next}
		})[0]
	read := b.typed("Identity", v)
	b.ConnectControl(exit.Node, read)
	b.ret(0, read.Out(0))
	b.countTo("unused", 10, b.number(0), b.number(10), b.number(1))
	wantNumber(t, &b.run(1)[0], 10)
}

func TestErrorInLoop(t *testing.T) {
	b := newBuilder(t)
	limit := b.enter("f", b.number(1000), constEnter)
	waits := b.enter("f", b.number(1), nil)
	b.add("", "Wait", nil, waits)
	b.loop("f", 10, []graph.Output{b.number(0)},
		func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], limit).Out(0) },
		func(v []graph.Output) []graph.Output {
			return []graph.Output{b.add("", "Fail", nil, b.add("", "AddLater", nil, v[0], limit).Out(0)).Out(0)}
		})
	e := b.compile()
	for range 3 {
		if _, err := call(t, e, 0); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("got %v", err)
		}
	}
}

// TestTransferInLoop sends the counter of a loop in every iteration.
func TestTransferInLoop(t *testing.T) {
	b := newBuilder(t)
	limit, one := b.enter("wl/while_context", b.number(3), constEnter), b.enter("wl/while_context", b.number(1), constEnter)
	b.loop("wl/while_context", 10, []graph.Output{b.number(0)},
		func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], limit).Out(0) },
		func(v []graph.Output) []graph.Output {
			b.transfer("_Send", "i", bob, alice, v[0])
			return []graph.Output{b.sum(v[0], one)}
		})
	table := rendezvous.New()
	if err := b.compile().Run(newStep(t, table), executor.RunOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range int64(4) {
		text := transferKey("i", bob, alice).At(kernel.FrameIter{Frame: 5189404682685958103, Iter: i})
		v, dead, err := table.Await(t.Context(), text)
		if err != nil || dead != (i == 3) {
			t.Errorf("iteration %d: dead %t, error %v", i, dead, err)
		}
		if !dead {
			wantNumber(t, &v, i)
		}
	}
	if n := table.Parked(); n != 0 {
		t.Errorf("%d items are left in the rendezvous", n)
	}
}

func TestBadFrames(t *testing.T) {
	tests := []struct {
		want  string
		build func(b *builder)
	}{
		{"Invalid Exit op: Cannot find a corresponding Enter op.", func(b *builder) { b.typed("Exit", b.number(1)) }},
		{"must have a frame name", func(b *builder) { b.enter("", b.number(1), nil) }},
		{"has inputs from different frames", func(b *builder) { b.sum(b.enter("f", b.number(1), nil), b.number(1)) }},
		{"Mismatched parent frames", func(b *builder) { b.enter("f", b.enter("f", b.number(1), nil), nil) }},
		{"is not connected", func(b *builder) { b.ConnectControl(b.number(1).Node, b.merge(2)) }},
		{"cycle that no value can enter", func(b *builder) {
			m := b.merge(1)
			if err := b.Connect(b.typed("NextIteration", m.Out(0)).Out(0), m, 0); err != nil {
				b.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		b := newBuilder(t)
		tt.build(b)
		_, err := executor.New(b.Graph, executor.Config{Device: testDevice, NewKernel: newKernel})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
