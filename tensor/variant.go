package tensor

import (
	"sync"

	"github.com/weft-ml/weft/status"
)

// EncodedVariant is the serialized form of a variant. A variant of an unregistered type stays in
// this form.
type EncodedVariant struct {
	TypeName string   // TensorFlow's name of the type, such as "tensorflow::TensorList"
	Metadata []byte   // in the format of the type
	Tensors  []Tensor // tensors in the value
}

// VariantEncoder is implemented by variant values that can be serialized.
type VariantEncoder interface {
	EncodeVariant() (EncodedVariant, error)
}

// EncodeVariant returns v itself.
func (v EncodedVariant) EncodeVariant() (EncodedVariant, error) { return v, nil }

// Encode returns the serialized form of the element, with an empty type for an empty element.
func (v VariantValue) Encode() (EncodedVariant, error) {
	if v.Value == nil {
		return EncodedVariant{}, nil
	}
	if e, ok := v.Value.(VariantEncoder); ok {
		return e.EncodeVariant()
	}
	return EncodedVariant{}, status.Unimplementedf("a variant that holds a %T cannot leave its process", v.Value)
}

// decoders holds the functions of RegisterVariant by the names of their types.
var decoders sync.Map

// RegisterVariant registers the decoder of a variant type. The function takes over the references
// of the tensors.
func RegisterVariant(typeName string, decode func(EncodedVariant) (any, error)) {
	decoders.Store(typeName, decode)
}

// Decode returns the value of the variant if its type is registered, and v itself otherwise.
func (v EncodedVariant) Decode() (any, error) {
	decode, ok := decoders.Load(v.TypeName)
	if !ok {
		return v, nil
	}
	return decode.(func(EncodedVariant) (any, error))(v)
}
