package listops

import (
	"testing"

	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// sharedList returns a list that has the same list twice, and so on, depth times. There are 2^depth
// ways to the innermost one.
func sharedList(depth int) *List {
	l := &List{dtype: tensor.Float32, limit: -1}
	number := tensor.Scalar[float32](3)
	l.items = l.items.resize(1).set(0, &number)
	for range depth {
		inner := tensor.Scalar(tensor.VariantValue{Value: l})
		l = &List{dtype: tensor.Variant, limit: -1}
		l.items = l.items.resize(2).set(0, &inner).set(1, &inner)
	}
	return l
}

// TestSharedLists computes with lists whose elements are visited once, not once for each way to
// them.
func TestSharedLists(t *testing.T) {
	const depth = 60
	l := sharedList(depth)
	zeros, err := l.ZerosLike()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := l.AddVariant(zeros)
	if err != nil {
		t.Fatal(err)
	}
	if sum, err = l.AddVariant(sum); err != nil {
		t.Fatal(err)
	}
	inner := sum.(*List)
	for range depth {
		inner = asList(tensor.Value[tensor.VariantValue](inner.items.get(1)))
	}
	if got := tensor.Value[float32](inner.items.get(0)); got != 6 {
		t.Errorf("the innermost sum is %v, want 6", got)
	}
	encoded := tensor.Scalar(tensor.VariantValue{Value: l})
	if _, err := pbconv.TensorToProto(&encoded); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("encoding: got %v", err)
	}
}
