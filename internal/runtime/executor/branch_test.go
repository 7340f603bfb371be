package executor_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func TestSwitch(t *testing.T) {
	for _, pred := range []bool{true, false} {
		b := newBuilder(t)
		onFalse, onTrue := b.sw(b.number(7), b.constant(tensor.Scalar(pred)))
		b.ret(0, b.typed("Identity", onFalse).Out(0))
		b.ret(1, b.typed("Identity", onTrue).Out(0))
		after := b.number(8) // a control edge from a dead node makes it dead
		b.ConnectControl(onFalse.Node, after.Node)
		b.ret(2, after)
		dead := b.number(9)
		b.ConnectControl(b.typed("Identity", onFalse).Out(0).Node, dead.Node)
		b.ret(3, dead)
		trigger := b.add("", "ControlTrigger", nil)
		b.ConnectControl(dead.Node, trigger)
		alive := b.number(10)
		b.ConnectControl(trigger, alive.Node)
		b.ret(4, alive)
		rets := b.run(5)
		live, other := 0, 1
		if pred {
			live, other = 1, 0
		}
		wantNumber(t, &rets[live], 7)
		if rets[other].Initialized() || rets[3].Initialized() == pred {
			t.Errorf("pred %t: got %v and %v", pred, &rets[other], &rets[3])
		}
		wantNumber(t, &rets[2], 8)
		wantNumber(t, &rets[4], 10)
	}
}

func TestSwitchN(t *testing.T) {
	for index, want := range map[int32]int{-1: 2, 0: 0, 1: 1, 2: 2, 3: 2} {
		b := newBuilder(t)
		n := b.add("", "_SwitchN", opdef.Attrs{"T": tensor.Int64, "num_outs": int64(3)}, b.number(7), b.constant(tensor.Scalar(index)))
		for i := range 3 {
			b.ret(i, n.Out(i))
		}
		rets := b.run(3)
		for i := range rets {
			if rets[i].Initialized() != (i == want) {
				t.Errorf("index %d: output %d is %v", index, i, &rets[i])
			}
		}
	}
}

func TestMerge(t *testing.T) {
	for _, pred := range []bool{true, false} {
		b := newBuilder(t)
		onFalse, onTrue := b.sw(b.number(7), b.constant(tensor.Scalar(pred)))
		m := b.merge(2, b.sum(onFalse, b.number(100)), b.sum(onTrue, b.number(200)))
		b.ret(0, m.Out(0))
		index := b.add("", "_Retval", opdef.Attrs{"T": tensor.Int32, "index": int64(1)}, m.Out(1))
		b.ConnectControl(m, index)
		rets := b.run(2)
		want, wantIndex := int64(107), int32(0)
		if pred {
			want, wantIndex = 207, 1
		}
		wantNumber(t, &rets[0], want)
		if got := tensor.Value[int32](&rets[1]); got != wantIndex {
			t.Errorf("pred %t: input %d was taken, want %d", pred, got, wantIndex)
		}
	}
}

// TestMergeWaitsForControlInputs checks a Merge with a control input and without live inputs.
func TestMergeWaitsForControlInputs(t *testing.T) {
	b := newBuilder(t)
	yes := b.constant(tensor.Scalar(true))
	dead, _ := b.sw(b.number(1), yes)
	m := b.merge(2, dead, dead)
	late := b.add("", "AddLater", nil, b.number(1), b.number(2))
	b.ConnectControl(late, m)
	b.ret(0, m.Out(0))
	alive := b.merge(2, dead, b.number(5))
	b.ConnectControl(late, alive)
	b.ret(1, alive.Out(0))
	rets := b.run(2)
	if rets[0].Initialized() {
		t.Errorf("a Merge without live inputs has the value %v", &rets[0])
	}
	wantNumber(t, &rets[1], 5)
}

func TestBadPredicate(t *testing.T) {
	b := newBuilder(t)
	b.sw(b.number(1), b.constant(tensor.Vector(true, false)))
	if _, err := call(t, b.compile(), 0); err == nil || !strings.Contains(err.Error(), "must be a scalar, but it has shape [2]") {
		t.Errorf("got %v", err)
	}
}
