package executor_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestReferences(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	set := b.add("set", "AssignRef", nil, v, b.arg(0, tensor.Int64))
	onFalse, onTrue := b.add("sw", "RefSwitch", opdef.Attrs{"T": tensor.Int64}, set.Out(0), b.constant(tensor.Scalar(true))).Out(0),
		b.Node("sw").Out(1)
	added := b.add("", "AssignAddRef", nil, onTrue, b.number(1)).Out(0)
	merged := b.add("m", "RefMerge", opdef.Attrs{"T": tensor.Int64, "N": int64(2)}, onFalse, added).Out(0)
	b.ret(0, b.sum(merged, merged))
	wantNumber(t, &b.run(1, 20)[0], 42)
}

func TestUninitialized(t *testing.T) {
	for _, op := range []string{"Identity", "Add2", "AssignAddRef"} {
		b := newBuilder(t)
		v := b.add("scope/v", "Var", nil).Out(0)
		switch op {
		case "Identity":
			b.typed(op, v)
		default:
			b.add("", op, nil, v, b.number(1))
		}
		_, err := call(t, b.compile(), 0)
		if status.CodeOf(err) != status.FailedPrecondition ||
			!strings.HasPrefix(err.Error(), "Attempting to use uninitialized value scope/v\n\t [[{{node "+op) {
			t.Errorf("%s: got %v", op, err)
		}
	}
}

// TestIdentityOfAVariableReadsLate checks a property that synchronous training relies on: the
// consumer of an Identity of a variable takes the value when it runs, here after an update that the
// Identity itself did not wait for.
func TestIdentityOfAVariableReadsLate(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	first := b.add("first", "AssignRef", nil, v, b.number(1))
	read := b.typed("Identity", v)
	b.ConnectControl(first, read)
	update := b.add("update", "AssignAddRef", nil, v, b.number(2))
	b.ConnectControl(read, update)
	late := b.sum(read.Out(0), b.number(0))
	b.ConnectControl(update, late.Node)
	b.ret(0, late)
	rets, err := call(t, b.compile(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.Value[int64](&rets[0]); got != 3 {
		t.Errorf("read %d, want the updated 3", got)
	}
}

// TestVariableIsReadInEveryIteration squares a variable in a loop. The variable is read outside of
// the loop.
func TestVariableIsReadInEveryIteration(t *testing.T) {
	b := newBuilder(t)
	v := b.add("v", "Var", nil).Out(0)
	first := b.add("first", "AssignRef", nil, v, b.number(2))
	read := b.typed("Identity", v)
	b.ConnectControl(first, read)
	inLoop := b.enter("loop", read.Out(0), constEnter)
	three, one := b.enter("loop", b.number(3), constEnter), b.enter("loop", b.number(1), constEnter)
	ref := b.add("ref", "RefEnter", opdef.Attrs{"T": tensor.Int64, "frame_name": "loop", "is_constant": true}, v)
	b.ConnectControl(first, ref)
	out := b.loop("loop", 1, []graph.Output{b.number(0)},
		func(v []graph.Output) graph.Output { return b.add("", "Less2", nil, v[0], three).Out(0) },
		func(v []graph.Output) []graph.Output {
			square := b.add("", "Mul2", nil, inLoop, inLoop)
			b.ConnectControl(v[0].Node, square)
			update := b.add("", "AssignRef", nil, ref.Out(0), square.Out(0))
			next := b.sum(v[0], one)
			b.ConnectControl(update, next.Node)
			return []graph.Output{next}
		})
	last := b.typed("Identity", v)
	b.ConnectControl(out[0].Node, last)
	b.ret(0, last.Out(0))
	wantNumber(t, &b.run(1)[0], 256)
}

// A row of nodes that may forward a reference is looked at once. It would take minutes to
// compile if each node looked at all before it.
func TestLongRowOfIdentities(t *testing.T) {
	const n = 200_000
	b := newBuilder(t)
	v := b.number(7)
	for range n {
		v = b.typed("Identity", v).Out(0)
	}
	b.ret(0, v)
	if out := b.run(1); tensor.Value[int64](&out[0]) != 7 {
		t.Errorf("got %v", out)
	}
}
