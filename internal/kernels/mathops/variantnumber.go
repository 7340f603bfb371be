package mathops

import (
	wire "encoding/binary"
	"fmt"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// variantNumber is a number in a variant.
type variantNumber[T any] struct {
	value T
	name  string // type name in the encoded form
	sum   func(x, y T) T
}

func init() {
	registerVariantNumber("int", plus[int32])
	registerVariantNumber("float", plus[float32])
	registerVariantNumber("double", plus[float64])
	registerVariantNumber("bool", func(x, y bool) bool { return x || y })
}

func plus[T int32 | float32 | float64](x, y T) T { return x + y }

// registerVariantNumber registers a variant type whose encoded form is the bytes of one number in
// native byte order.
func registerVariantNumber[T any](name string, sum func(x, y T) T) {
	tensor.RegisterVariant(name, func(v tensor.EncodedVariant) (any, error) {
		n := variantNumber[T]{name: name, sum: sum}
		if size := wire.Size(n.value); len(v.Metadata) != size {
			return nil, status.InvalidArgumentf("a variant of type %s has %d bytes, got %d", name, size, len(v.Metadata))
		}
		_, err := wire.Decode(v.Metadata, wire.LittleEndian, &n.value)
		return n, err
	})
}

// EncodeVariant returns the encoded form of the number.
func (n variantNumber[T]) EncodeVariant() (tensor.EncodedVariant, error) {
	b, err := wire.Append(nil, wire.LittleEndian, n.value)
	return tensor.EncodedVariant{TypeName: n.name, Metadata: b}, err
}

// AddVariant returns the sum of n and another number of its type.
func (n variantNumber[T]) AddVariant(other any) (any, error) {
	m, ok := other.(variantNumber[T])
	if !ok {
		return nil, status.Errorf(status.Internal, "BinaryOpVariants: Variants a and b have different type ids.  Type names: '%s' vs. '%T'", n.name, other)
	}
	n.value = n.sum(n.value, m.value)
	return n, nil
}

// ZerosLike returns the zero of n's type.
func (n variantNumber[T]) ZerosLike() (any, error) {
	return variantNumber[T]{name: n.name, sum: n.sum}, nil
}

// String formats the number with up to six significant digits.
func (n variantNumber[T]) String() string {
	switch v := any(n.value).(type) {
	case float32, float64:
		return fmt.Sprintf("%.6g", v)
	case bool:
		if v {
			return "1"
		}
		return "0"
	}
	return fmt.Sprint(n.value)
}
