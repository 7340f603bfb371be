package samehost

import (
	"errors"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/tensor"
)

// A request whose offer names further keys is for several tensors of a step. It is answered with
// those that are there when the first of them is, next to each other in one message. The borrower
// asks for the others again, so that no tensor waits for another one. Large tensors, and those that
// are no plain elements, are asked for alone.

const (
	// maxPacked is the size in bytes up to which a tensor travels with others.
	maxPacked = 32 << 10
	// maxBatch bounds the tensors of one request, and packSize the bytes from which its answer is
	// full.
	maxBatch = 1024
	packSize = 1 << 20
)

// Keys returns the keys of a request for several tensors, nil for any other.
func (l *Lender) BatchKeys(req *message.RecvTensorRequest) []string {
	if req.Transport == nil {
		return nil
	}
	o, ok := decodeOffer(req.Transport)
	if !ok || len(o.also) == 0 {
		return nil
	}
	return append([]string{req.Key}, o.also...)
}

// Pack makes a response of values, and returns those that it has no place for, to be put back where
// they were.
func (l *Lender) PackBatch(values []rendezvous.Value, resp *message.RecvTensorResponse) (left []rendezvous.Value) {
	r := reply{batches: true}
	size := 0
	for i := range values {
		v := &values[i]
		n := len(v.Tensor.Bytes())
		switch {
		case v.Tensor.Initialized() && !lendable(v.Tensor.DType()) || n > maxPacked:
			r.alone = append(r.alone, v.Index)
			left = append(left, *v)
		case size > packSize:
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

// appendValue appends a value as a message of its own.
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

// valueSize returns the size of the message that appendValue writes. The keys of its fields are of
// one byte.
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

// decodeValue reads what appendValue has written. The tensor is a copy.
func decodeValue(b []byte) (v rendezvous.Value, err error) {
	var dtype tensor.DType
	var shape tensor.Shape
	var content []byte
	v.Index = -1
	err = fields(b, func(field int, n uint64, b []byte) {
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
		v.Tensor = tensor.Vector[float32]() // as TensorFlow sends it
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

var errNoProgress = errors.New("a request for several tensors was answered with none")
