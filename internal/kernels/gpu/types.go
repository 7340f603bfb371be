package gpu

import (
	"strings"

	"github.com/weft-ml/weft/internal/gpu/source"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// kernelTypes are the kernels of package source that operations of this package name, by their
// element types. It is written out, and checked by a test, so that programs without devices
// need not read the source.
var kernelTypes = map[string]string{
	"bf16 f16 f32":                       "lrn normalize",
	"f16 f32":                            "lstm",
	"f32":                                "gru",
	"f16 bf16 f32 i8 i16 i32 u8 u16 u32": "topkeys",
	"complexes":                          "conj",
	"f32 f64":                            "dawsn erfinv expint ndtri nextafter polygamma proximaladagrad zeta",
	"f16 f32 f64":                        "besseli0 besseli0e besseli1 besseli1e besselk0 besselk0e besselk1 besselk1e digamma",
	"floats": "acos acosh adadelta adagrad adagradv2 adam adamax adamwithamsgrad addsign asin asinh atan atan2 atanh avgpool " +
		"bilinear ceil centeredrmsprop col2im cos cosh depthwise dividerows elu elugrad erf erfc exp expm1 floor ftrl ftrlv2 " +
		"gradientdescent invgrad isfinite isinf isnan kerasmomentum leaky leakygrad lgamma log log1p matmul32 maxpool " +
		"momentum normal powersign rint rmsprop rsqrt rsqrtgrad selu selugrad sigmoid sigmoidgrad sin sinh softmax " +
		"softplus softplusgrad softsign softsigngrad sqrt sqrtgrad sumsquares tan tanh tanhgrad truncated truncatediv " +
		"uniform xdivy xent xlog1py xlogy",
	"floats complexes":         "divnonan mulnonan",
	"floats complexes i32 i64": "squareddifference",
	"floats i32 i64":           "mod",
	"floats signed":            "pow relu sign",
	"floats signed complexes":  "abs inv neg",
	"floats signed u16 u8":     "clip",
	"floats signed unsigned": "bias cumprod cumsum floordiv floormod greater greaterequal less lessequal max max min min prod relu6 relu6grad " +
		"relugrad scatteradd sum",
	"floats signed unsigned complexes":    "add div mul square sub",
	"floats signed unsigned complexes b8": "equal notequal",
	"floats unsigned b8 i16 i32 i8":       "argmax argmin",
	"i32 i64":                             "ranged",
	"i32 i64 u32 u64":                     "full",
	"signed unsigned":                     "and invert leftshift or popcount rightshift xor",
}

// typeSets are the sets of element types in kernelTypes.
var typeSets = map[string][]tensor.DType{
	"floats":    {tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64},
	"signed":    {tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64},
	"unsigned":  {tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64},
	"complexes": {tensor.Complex64, tensor.Complex128},
}

// typesByKernel are the element types of the kernels, by their names without types.
var typesByKernel = func() map[string][]tensor.DType {
	out := make(map[string][]tensor.DType, 1<<7)
	for types, names := range kernelTypes {
		var list []tensor.DType
		for word := range strings.FieldsSeq(types) {
			if set, ok := typeSets[word]; ok {
				list = append(list, set...)
			} else {
				list = append(list, source.TypesByName[word])
			}
		}
		for name := range strings.FieldsSeq(names) {
			out[name] = list
		}
	}
	return out
}()

// withKernel returns the constraint of an attribute to the types for which there is a kernel.
func withKernel(attr, name string) kernel.Constraint {
	return kernel.Constraint{Attr: attr, Types: typesByKernel[name]}
}
