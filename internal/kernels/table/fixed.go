package table

import (
	"context"
	"math"
	"strconv"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// fixed is a hash table that is initialized once and then immutable.
type fixed struct {
	mutable
	ready bool
}

func createFixed(_ *kernel.Context, c *kernel.Construction) (contents, layout, error) {
	l := layout{keyType: c.Attrs.Type("key_dtype"), valueType: c.Attrs.Type("value_dtype")}
	m, err := newMutable(l)
	if err != nil {
		return nil, l, err
	}
	return &fixed{mutable: *m}, l, nil
}

func (f *fixed) find(ctx context.Context, out, keys, defaults *tensor.Tensor) error {
	if !f.ready {
		return status.FailedPreconditionf("Table not initialized.")
	}
	return f.get(ctx, out, keys, defaults, false)
}

func (f *fixed) insert(context.Context, *membudget.Account, *tensor.Tensor, *tensor.Tensor) error {
	return status.Unimplementedf("Insert not supported by InitializableLookupTable implementations")
}

func (f *fixed) remove(context.Context, *membudget.Account, *tensor.Tensor) error {
	return status.Unimplementedf("Remove not supported by InitializableLookupTable implementations")
}

func (f *fixed) export() (keys, values tensor.Tensor, err error) {
	if !f.ready {
		return keys, values, status.Abortedf("HashTable is not initialized.")
	}
	return f.mutable.export()
}

// replace initializes the table. Initializing it again with the same number of keys has no effect.
func (f *fixed) replace(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor) error {
	if err := f.checkPairs(keys, values); err != nil {
		return err
	}
	if keys.NumElements() == 0 {
		return status.InvalidArgumentf("keys and values cannot be empty tensors.")
	}
	if f.ready {
		return f.checkFilledAgain(keys.NumElements())
	}
	err := f.refill(ctx, a, keys, values, func(numbers []int64) error { return checkUnique(keys, values, numbers) })
	f.ready = err == nil
	return err
}

func (f *fixed) checkFilledAgain(n int) error {
	if n != f.size() {
		return status.FailedPreconditionf("Table was already initialized with different data.")
	}
	return nil
}

// checkUnique checks that a repeated key has equal values. Keys are numbered in the order of their
// first occurrence.
func checkUnique(keys, values *tensor.Tensor, numbers []int64) error {
	var first []int // position of the first occurrence of each key
	for i, number := range numbers {
		if int(number) == len(first) {
			first = membudget.Append(first, i)
			continue
		}
		if at := first[number]; !equal(values, at, i) {
			return status.FailedPreconditionf("HashTable has different value for same key. Key %s has %s and trying to add value %s",
				text(keys, i), text(values, at), text(values, i))
		}
	}
	return nil
}

// equal compares two elements as C++ does.
func equal(t *tensor.Tensor, i, j int) bool {
	switch t.DType() {
	case tensor.Float32:
		v := tensor.Values[float32](t)
		return v[i] == v[j]
	case tensor.Float64:
		v := tensor.Values[float64](t)
		return v[i] == v[j]
	}
	return text(t, i) == text(t, j)
}

// text formats an element as in TensorFlow's errors.
func text(t *tensor.Tensor, i int) string {
	switch t.DType() {
	case tensor.String:
		return tensor.Values[string](t)[i]
	case tensor.Bool:
		if tensor.Values[bool](t)[i] {
			return "1"
		}
		return "0"
	case tensor.Int32:
		return strconv.Itoa(int(tensor.Values[int32](t)[i]))
	case tensor.Int64:
		return strconv.FormatInt(tensor.Values[int64](t)[i], 10)
	case tensor.Float32:
		return sixDigits(float64(tensor.Values[float32](t)[i]))
	case tensor.Float64:
		return sixDigits(tensor.Values[float64](t)[i])
	}
	return "?"
}

func sixDigits(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
