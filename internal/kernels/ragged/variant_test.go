package ragged

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// run runs an operation.
func run(t *testing.T, op string, attrs opdef.Attrs, in ...tensor.Tensor) ([]tensor.Tensor, error) {
	t.Helper()
	n, err := kerneltest.NewEnv().Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	return n.Run(in...)
}

func mustTensor(t *testing.T, v any) tensor.Tensor {
	t.Helper()
	out, err := tensor.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// toVariants returns a ragged tensor, or each of its rows if batched, in variants.
func toVariants(t *testing.T, batched bool, parts ...tensor.Tensor) (tensor.Tensor, error) {
	t.Helper()
	outs, err := run(t, "RaggedTensorToVariant", opdef.Attrs{
		"RAGGED_RANK": int64(len(parts) - 1), "Tvalues": parts[len(parts)-1].DType(), "batched_input": batched,
	}, parts...)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return outs[0], nil
}

func fromVariants(t *testing.T, in, out int, values tensor.DType, v tensor.Tensor) ([]tensor.Tensor, error) {
	t.Helper()
	return run(t, "RaggedTensorFromVariant", opdef.Attrs{
		"input_ragged_rank": int64(in), "output_ragged_rank": int64(out), "Tvalues": values,
	}, v)
}

// TestVariantsKeepRows converts ragged tensors to variants and back, also over the wire.
func TestVariantsKeepRows(t *testing.T) {
	long := func(v ...int64) tensor.Tensor { return tensor.Vector(v...) }
	for _, tt := range []struct {
		name  string
		parts []tensor.Tensor
	}{
		{"one level", []tensor.Tensor{long(0, 2, 2, 5), tensor.Vector[float32](1, 2, 3, 4, 5)}},
		{"two levels", []tensor.Tensor{long(0, 2, 3), long(0, 1, 1, 4), tensor.Vector("a", "b", "c", "d")}},
		{"matrices", []tensor.Tensor{long(0, 1, 3), mustTensor(t, [][]float64{{1, 2}, {3, 4}, {5, 6}})}},
		{"no rows", []tensor.Tensor{long(0), tensor.Vector[int32]()}},
		{"dense", []tensor.Tensor{mustTensor(t, [][]int32{{1, 2}, {3, 4}})}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := len(tt.parts) - 1
			values := tt.parts[n].DType()
			for _, batched := range []bool{true, false} {
				v, err := toVariants(t, batched, tt.parts...)
				if err != nil {
					t.Fatal(err)
				}
				overWire(t, v)
				in := n
				if batched {
					in = max(n-1, 0)
				}
				got, err := fromVariants(t, in, n, values, v)
				if err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if a, b := got[i].Go(), tt.parts[i].Go(); !reflect.DeepEqual(a, b) {
						t.Errorf("batched %v, part %d: %v, want %v", batched, i, a, b)
					}
				}
			}
		})
	}
}

// overWire replaces every variant by its encoded and decoded copy.
func overWire(t *testing.T, v tensor.Tensor) {
	t.Helper()
	for i, e := range tensor.Values[tensor.VariantValue](&v) {
		encoded, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		value, err := encoded.Decode()
		if err != nil {
			t.Fatal(err)
		}
		tensor.Values[tensor.VariantValue](&v)[i].Value = value
	}
}

func TestVariantsThatDoNotFit(t *testing.T) {
	rows, err := toVariants(t, true, tensor.Vector[int64](0, 2, 3), tensor.Vector[float32](1, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		in, out int
		values  tensor.DType
		v       tensor.Tensor
		want    string
	}{
		{1, 2, tensor.Float32, rows, "Encoded input RaggedTensorVariant has ragged_rank=0.  Expected ragged_rank=1."},
		{0, 2, tensor.Float32, rows, "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); output_ragged_rank: 2, " +
			"input_ragged_rank: 0, encoded_variant.dims(): 1."},
		{0, 1, tensor.Int32, rows, "Expected values Tensor dtype: int32, found: float"},
		{0, 1, tensor.Float32, tensor.Vector(tensor.VariantValue{Value: 1}), "Input Variant element at index 0 doesn't hold a RaggedTensorVariant: 1"},
		{0, 0, tensor.Float32, rows, "All flat_values must have compatible shapes.  Shape at index 0: [2].  Shape at index 1: [1]"},
	} {
		if _, err := fromVariants(t, tt.in, tt.out, tt.values, tt.v); err == nil || err.Error() != tt.want {
			t.Errorf("error %v\n want %s", err, tt.want)
		}
	}
	_, err = toVariants(t, true, tensor.Vector[int64](0, 4), tensor.Vector[float32](1, 2, 3))
	if err == nil || !strings.Contains(err.Error(), "last element of ragged splits must be the number of ragged values(3) but is 4") {
		t.Errorf("splits past the values: %v", err)
	}
}

// TestGradientOfVariants combines gradients of rows. A row without gradient is zero.
func TestGradientOfVariants(t *testing.T) {
	splits := tensor.Vector[int64](0, 2, 2, 3)
	rows, err := toVariants(t, true, splits, tensor.Vector[float32](1, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	tensor.Values[tensor.VariantValue](&rows)[0].Value = nil
	got, err := run(t, "RaggedTensorToVariantGradient", opdef.Attrs{"Tvalues": tensor.Float32}, rows, splits, tensor.Vector[int32](3))
	if err != nil {
		t.Fatal(err)
	}
	if v := tensor.Values[float32](&got[0]); !reflect.DeepEqual(v, []float32{0, 0, 3}) {
		t.Errorf("gradient %v", v)
	}
}

func TestSumsOfVariants(t *testing.T) {
	whole, err := toVariants(t, false, tensor.Vector[int64](0, 2, 3), tensor.Vector[float32](1, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	r := tensor.Value[tensor.VariantValue](&whole).Value.(*Tensor)
	sum, err := r.AddVariant(r)
	if err != nil {
		t.Fatal(err)
	}
	if v := tensor.Values[float32](&sum.(*Tensor).values); !reflect.DeepEqual(v, []float32{2, 4, 6}) {
		t.Errorf("sum %v", v)
	}
	zero, err := r.ZerosLike()
	if err != nil {
		t.Fatal(err)
	}
	if v := tensor.Values[float32](&zero.(*Tensor).values); !reflect.DeepEqual(v, []float32{0, 0, 0}) {
		t.Errorf("zeros %v", v)
	}
	other, err := toVariants(t, false, tensor.Vector[int64](0, 1, 3), tensor.Vector[float32](1, 2, 3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddVariant(tensor.Value[tensor.VariantValue](&other).Value); err == nil {
		t.Error("added rows of different lengths")
	}
}
