package mathops_test

import (
	"testing"

	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels" // operations of other families
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestComposition constructs compositions of all operations that TensorFlow composes.
func TestComposition(t *testing.T) {
	names := []string{
		"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Expm1", "Exp", "Floor", "Inv", "Log", "Log1p",
		"Neg", "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh", "Elu", "Relu", "Relu6",
		"Selu",
	}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.Float64} {
		attrs := opdef.Attrs{"T": dtype, "op_names": names}
		types := []tensor.DType{dtype}
		impl := kernel.Default.Find("_UnaryOpsComposition", kernel.CPU, attrs)
		if _, err := impl.New(&kernel.Construction{Attrs: attrs, Inputs: types, Outputs: types}); err != nil {
			t.Errorf("%v: %v", dtype, err)
		}
	}
}
