package samehost

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/tensor"
)

// A request whose offer has further keys is a batch request. The response contains the tensors that
// are available when the first one is, in one message. The borrower requests the others again, so
// that no tensor waits for another one. Tensors that are large, or whose elements are not plain
// memory, must be requested individually.
//
// The simple design has one request per tensor. It costs 20 µs of CPU time; a tensor in a batch
// costs 2 µs. A step that reads 100 variables of 1 KiB took 2.1 ms with one request each, and takes
// 0.66 ms with batches.

const (
	// maxBatchedSize is the largest tensor in a batch, in bytes.
	maxBatchedSize = 32 << 10
	// maxBatchKeys bounds the tensors of one request. batchFull is the size, in bytes, from which a
	// response takes no further tensors.
	maxBatchKeys = 1024
	batchFull    = 1 << 20
)

// BatchKeys returns the keys of a batch request, and nil for any other request.
func (l *Lender) BatchKeys(req *message.RecvTensorRequest) []string {
	if req.Transport == nil {
		return nil
	}
	o, ok := decodeOffer(req.Transport)
	if !ok || len(o.moreKeys) == 0 {
		return nil
	}
	return append([]string{req.Key}, o.moreKeys...)
}

// PackBatch moves values into a batch response, whose references it releases. It returns the values
// that the response has no room for; they must be put back.
func (l *Lender) PackBatch(values []rendezvous.Value, resp *message.RecvTensorResponse) (left []rendezvous.Value) {
	r := reply{acceptsBatches: true}
	size := 0
	for i := range values {
		v := &values[i]
		n := len(v.Tensor.Bytes())
		switch {
		case v.Tensor.Initialized() && !lendable(v.Tensor.DType()) || n > maxBatchedSize:
			r.single = append(r.single, v.Index)
			left = append(left, *v)
		case size > batchFull:
			left = append(left, *v)
		default:
			size += n
			r.values = append(r.values, *v)
		}
	}
	resp.Transport = r.encode()
	for i := range r.values {
		r.values[i].Tensor.Release()
	}
	return left
}

// appendValue appends a value as an embedded message.
func appendValue(b []byte, v *rendezvous.Value) []byte {
	b = protowire.AppendTag(b, 8, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(valueSize(v)))
	b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), uint64(v.Index))
	if v.Dead {
		b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), 1)
	}
	if v.Tensor.Initialized() {
		b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), uint64(v.Tensor.DType()))
		for _, d := range v.Tensor.Shape() {
			b = protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.VarintType), uint64(d))
		}
		b = protowire.AppendBytes(protowire.AppendTag(b, 5, protowire.BytesType), v.Tensor.Bytes())
	}
	return b
}

// valueSize returns the size of the message that appendValue writes, in bytes. Its field tags have
// one byte each.
func valueSize(v *rendezvous.Value) int {
	n := 1 + protowire.SizeVarint(uint64(v.Index))
	if v.Dead {
		n += 2
	}
	if v.Tensor.Initialized() {
		n += 1 + protowire.SizeVarint(uint64(v.Tensor.DType()))
		for _, d := range v.Tensor.Shape() {
			n += 1 + protowire.SizeVarint(uint64(d))
		}
		n += 1 + protowire.SizeBytes(len(v.Tensor.Bytes()))
	}
	return n
}

// decodeValue decodes a value that appendValue has written. The tensor is a copy.
func decodeValue(b []byte) (v rendezvous.Value, err error) {
	var dtype tensor.DType
	var shape tensor.Shape
	var content []byte
	v.Index = -1
	err = parseFields(b, func(field int, n uint64, b []byte) {
		switch field {
		case 1:
			v.Index = int(min(n, math.MaxInt32))
		case 2:
			v.Dead = n != 0
		case 3:
			dtype = tensor.DType(min(n, math.MaxUint8))
		case 4:
			if len(shape) <= tensor.MaxRank {
				shape = append(shape, int64(n))
			}
		case 5:
			content = b
		}
	})
	switch {
	case err != nil:
		return v, err
	case dtype == tensor.Invalid && v.Dead:
		v.Tensor = tensor.Vector[float32]() // TensorFlow sends this for a dead tensor
		return v, nil
	case !lendable(dtype) || shape.Check() != nil || shape.NumElements() > int64(len(content)) ||
		shape.NumElements()*int64(dtype.Size()) != int64(len(content)):
		return v, errMalformed
	}
	if v.Tensor, err = tensor.AllocShared(dtype, shape); err == nil {
		copy(v.Tensor.Bytes(), content)
	}
	return v, err
}

var errNoProgress = errors.New("a batch response has no tensors")
