package tensor

import "github.com/weft-ml/weft/status"

// EncodedVariant is a variant as it travels between processes. A variant that came from one stays in this form until a
// kernel that knows its type decodes it.
type EncodedVariant struct {
	TypeName string // TensorFlow's name of the type, such as "tensorflow::TensorList"
	Metadata []byte // in the format of the type
	Tensors  []Tensor
}

// VariantEncoder is implemented by the values of variants that can travel.
type VariantEncoder interface {
	EncodeVariant() (EncodedVariant, error)
}

// EncodeVariant returns v itself.
func (v EncodedVariant) EncodeVariant() (EncodedVariant, error) { return v, nil }

// Encode returns the form in which the element travels, with an empty type for one that holds nothing.
func (v VariantValue) Encode() (EncodedVariant, error) {
	if v.Value == nil {
		return EncodedVariant{}, nil
	}
	if e, ok := v.Value.(VariantEncoder); ok {
		return e.EncodeVariant()
	}
	return EncodedVariant{}, status.Unimplementedf("a variant that holds a %T cannot leave its process", v.Value)
}
