package listops

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// within calls f with a limit of the memory of the process, in bytes.
func within(limit int64, f func() error) error {
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(limit)
	return guard.Call("a test", f)
}

// listOf returns a list of n elements that share the given tensor.
func listOf(n int, elem tensor.Tensor) *List {
	l := &List{dtype: elem.DType(), limit: -1}
	l.items, _ = vectorOf(n, func(int) (*tensor.Tensor, error) { return &elem, nil })
	return l
}

// Strings of a key may share a text.
func TestMemoryOfKeys(t *testing.T) {
	attrs := opdef.Attrs{"key_dtype": tensor.String}
	kerneltest.WantExhausted(t, 256<<20, "TensorMapHasKey", attrs,
		tensor.Scalar(tensor.VariantValue{Value: &Map{}}), kerneltest.SharedText(1<<10, 1<<20))
}

// A tensor array has memory for 256 elements at a time, and a write may be to one of them.
func TestMemoryOfSparseArrays(t *testing.T) {
	err := within(256<<20, func() error {
		c := newCells(1 << 25)
		for i := 0; i < c.n; i += pageSize {
			c.at(i).written = true
		}
		return nil
	})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// The pairs of lists whose sum is a list can be many more than the lists.
func TestMemoryOfSums(t *testing.T) {
	const n, length = 100, 1000
	number := tensor.Scalar[float32](1)
	var lists, others [n]tensor.Tensor
	for i := range n {
		unset := &List{dtype: tensor.Float32, limit: -1, items: vector{}.resize(length)}
		lists[i], others[i] = variantOf(unset), variantOf(listOf(length, number))
	}
	pairs := func(at func(i, j int) *tensor.Tensor) *List {
		l := &List{dtype: tensor.Variant, limit: -1}
		l.items, _ = vectorOf(n*n, func(i int) (*tensor.Tensor, error) { return at(i/n, i%n), nil })
		return l
	}
	a := pairs(func(i, _ int) *tensor.Tensor { return &lists[i] })
	b := pairs(func(_, j int) *tensor.Tensor { return &others[j] })
	err := within(64<<20, func() error {
		_, err := a.AddVariant(b)
		return err
	})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// Lists can be nested by a loop. The stack of a visit of all lists must stay small.
func TestNestedLists(t *testing.T) {
	l := listOf(1, tensor.Scalar[float32](1))
	for range 2 * maxNested {
		l = listOf(1, variantOf(l))
	}
	if _, err := l.ZerosLike(); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("zeros: got %v", err)
	}
	if _, err := l.AddVariant(l); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("sum: got %v", err)
	}
}

// A list doubles when it is appended to itself.
func TestLengthOfConcatenation(t *testing.T) {
	attrs, l := opdef.Attrs{"element_dtype": tensor.Float32}, variantOf(&List{dtype: tensor.Float32, limit: -1, items: vector{}.resize(math.MaxInt32)})
	if _, err := kerneltest.Try("TensorListConcatLists", attrs, l, l); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("got %v", err)
	}
	l = variantOf(listOf(1, tensor.Scalar[float32](1)))
	kerneltest.WantCancelled(t, "TensorListConcatLists", attrs, l, l)
}

// The encoded form of a list has the positions of elements that the list takes no memory for.
func TestMemoryOfEncodedLists(t *testing.T) {
	err := within(256<<20, func() error {
		_, err := (&List{dtype: tensor.Float32, limit: -1, items: vector{}.resize(1 << 28)}).EncodeVariant()
		return err
	})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("encoding: got %v", err)
	}
	const n = 1 << 20
	meta := binary.AppendUvarint(nil, n)
	for i := range n {
		meta = binary.AppendUvarint(meta, uint64(i))
	}
	err = within(48<<20, func() error {
		_, err := decode(tensor.EncodedVariant{TypeName: typeName, Metadata: meta})
		return err
	})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("decoding: got %v", err)
	}
}
