package pbconv

import (
	"encoding/binary"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Encoding of elements in tensor_content: numbers and booleans as in memory. For strings, handles
// and variants: the length of every element as a varint, followed by the bytes of all. The bytes of
// a handle are a ResourceHandleProto, those of a variant a VariantTensorDataProto.

// DecodeElements returns the tensor of the given type and shape with the elements in content, with
// one reference. Numbers share the memory of content.
func DecodeElements(dtype tensor.DType, shape tensor.Shape, content []byte) (tensor.Tensor, error) {
	return newReader().content(dtype, shape, content)
}

func (r *reader) content(dtype tensor.DType, shape tensor.Shape, content []byte) (tensor.Tensor, error) {
	if dtype.Size() > 0 {
		if dtype == tensor.Bool {
			content = cleanBools(content)
		}
		return tensor.FromBytes(dtype, shape, content, nil)
	}
	elems, err := splitElements(shape, content)
	if err != nil {
		return tensor.Tensor{}, status.InvalidArgumentf("a %v tensor of shape %v: %w", dtype, shape, err)
	}
	switch dtype {
	case tensor.String:
		vals := make([]string, len(elems))
		for i, e := range elems {
			vals[i] = string(e)
		}
		return tensor.FromSlice(shape, vals)
	case tensor.Resource:
		protos, err := unmarshalEach[pb.ResourceHandleProto](elems)
		if err != nil {
			return tensor.Tensor{}, err
		}
		return r.handles(shape, protos)
	case tensor.Variant:
		protos, err := unmarshalEach[pb.VariantTensorDataProto](elems)
		if err != nil {
			return tensor.Tensor{}, err
		}
		return r.variants(shape, protos)
	default:
		_, err := elementType(pb.DataType(dtype))
		return tensor.Tensor{}, err
	}
}

// cleanBools returns content, or a copy in which all bytes other than 0 are 1. Go's compiler relies
// on these two values. Like TensorFlow, cleanBools treats other values as true.
func cleanBools(content []byte) []byte {
	if !slices.ContainsFunc(content, noBool) {
		return content
	}
	clean := make([]byte, len(content))
	for i, b := range content {
		clean[i] = min(b, 1)
	}
	return clean
}

func noBool(b byte) bool { return b > 1 }

// splitElements returns the bytes of each element. They share the memory of content.
func splitElements(shape tensor.Shape, content []byte) ([][]byte, error) {
	n := shape.NumElements()
	if n > int64(len(content)) { // every element has a length of at least one byte
		return nil, status.InvalidArgumentf("%d bytes are too few for %d elements", len(content), n)
	}
	sizes := make([]uint32, n)
	for i := range sizes {
		size, width := binary.Uvarint(content)
		if width <= 0 || size > 1<<31 {
			return nil, status.InvalidArgumentf("the length of element %d is malformed", i)
		}
		sizes[i], content = uint32(size), content[width:]
	}
	elems := make([][]byte, n)
	for i, size := range sizes {
		if int64(size) > int64(len(content)) {
			return nil, status.InvalidArgumentf("element %d is %d bytes long, but %d are left", i, size, len(content))
		}
		elems[i], content = content[:size:size], content[size:]
	}
	if len(content) > 0 {
		return nil, status.InvalidArgumentf("%d bytes are left after the last element", len(content))
	}
	return elems, nil
}

// EncodeElements returns the tensor_content of a string, resource or variant tensor.
func EncodeElements(t *tensor.Tensor) ([]byte, error) {
	switch t.DType() {
	case tensor.String:
		return joinElements(tensor.Values[string](t))
	case tensor.Resource:
		return marshalEach(tensor.Values[*tensor.Handle](t), func(h *tensor.Handle) (proto.Message, error) {
			return HandleToProto(h), nil
		})
	case tensor.Variant:
		var w writer
		return marshalEach(tensor.Values[tensor.VariantValue](t), func(v tensor.VariantValue) (proto.Message, error) {
			return w.variant(v)
		})
	default:
		return t.Bytes(), nil
	}
}

func joinElements[E ~string | ~[]byte](elems []E) ([]byte, error) {
	size := 0
	for _, e := range elems {
		size += len(e) + uvarintSize(len(e))
	}
	if !membudget.Take(int64(size)) {
		return nil, errNoMemory
	}
	out := make([]byte, 0, size)
	for _, e := range elems {
		out = binary.AppendUvarint(out, uint64(len(e)))
	}
	for _, e := range elems {
		out = append(out, e...)
	}
	return out, nil
}

func uvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

func marshalEach[T any](vals []T, message func(T) (proto.Message, error)) ([]byte, error) {
	elems := make([][]byte, len(vals))
	for i, v := range vals {
		m, err := message(v)
		if err != nil {
			return nil, err
		}
		if elems[i], err = Marshal(m); err != nil {
			return nil, status.Errorf(status.CodeOf(err), "element %d: %w", i, err)
		}
	}
	return joinElements(elems)
}

func unmarshalEach[M any, P interface {
	*M
	proto.Message
}](elems [][]byte) ([]P, error) {
	out := make([]P, len(elems))
	for i, e := range elems {
		out[i] = P(new(M))
		if err := proto.Unmarshal(e, out[i]); err != nil {
			return nil, status.InvalidArgumentf("element %d: %w", i, err)
		}
	}
	return out, nil
}
