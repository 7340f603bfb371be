package tensor

import "github.com/weft-ml/weft/status"

// FromFloat returns a scalar of a numeric type with the value of v, converted by Go's rules.
func FromFloat(dtype DType, v float64) (Tensor, error) {
	switch dtype {
	case Float32:
		return Scalar(float32(v)), nil
	case Float64:
		return Scalar(v), nil
	case Float16:
		return Scalar(Float16Of(float32(v))), nil
	case BFloat16:
		return Scalar(BFloat16Of(float32(v))), nil
	case Int8:
		return Scalar(int8(v)), nil
	case Int16:
		return Scalar(int16(v)), nil
	case Int32:
		return Scalar(int32(v)), nil
	case Int64:
		return Scalar(int64(v)), nil
	case Uint8:
		return Scalar(uint8(v)), nil
	case Uint16:
		return Scalar(uint16(v)), nil
	case Uint32:
		return Scalar(uint32(v)), nil
	case Uint64:
		return Scalar(uint64(v)), nil
	case Complex64:
		return Scalar(complex(float32(v), 0)), nil
	case Complex128:
		return Scalar(complex(v, 0)), nil
	default:
		return Tensor{}, status.InvalidArgumentf("a %v is not a number", dtype)
	}
}
