package samehost

import (
	"errors"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/tensor"
)

// The contents of transport_options are protocol buffer messages, encoded and decoded by hand.
const (
	offerType = "type.googleapis.com/weft.TransferOffer"
	replyType = "type.googleapis.com/weft.TransferReply"
)

// offer is the message of a borrower.
type offer struct {
	channel  uint64   // 1: number of its channel; 0 for none
	fetch    uint64   // 2: ID of a lease to be sent as bytes
	probe    bool     // 3: asks for the capabilities of the lender
	moreKeys []string // 4: further keys of a batch request
}

// reply is the message of a lender: a handshake next to the first tensor, a lease, or a batch.
type reply struct {
	socket string // 1: name of the Unix socket
	secret []byte // 2

	leaseID      uint64       // 3
	elementsAddr uint64       // 4: address of the elements
	idAddr       uint64       // 5: address of the lease ID
	dtype        tensor.DType // 6
	shape        tensor.Shape // 7

	values         []rendezvous.Value // 8: the available tensors of a batch request
	single         []int              // 9: indices of tensors that must be requested individually
	acceptsBatches bool               // 10: the lender accepts batch requests
	// 11: slot through which the lease is returned, from 1; 0 for the channel itself
	slot uint64
}

var errMalformed = errors.New("malformed transport options")

func (o *offer) encode() *anypb.Any {
	size := 2 * (1 + 8)
	for _, key := range o.moreKeys {
		size += 1 + protowire.SizeBytes(len(key))
	}
	b := appendFixed(make([]byte, 0, size+2), 1, o.channel)
	b = appendFixed(b, 2, o.fetch)
	b = appendBool(b, 3, o.probe)
	for _, key := range o.moreKeys {
		b = protowire.AppendString(protowire.AppendTag(b, 4, protowire.BytesType), key)
	}
	return &anypb.Any{TypeUrl: offerType, Value: b}
}

func (r *reply) encode() *anypb.Any {
	size := 64 + len(r.socket) + len(r.secret) + 11*len(r.shape) + 11*len(r.single)
	for i := range r.values {
		size += 1 + protowire.SizeBytes(valueSize(&r.values[i]))
	}
	b := make([]byte, 0, size)
	if r.socket != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), r.socket)
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), r.secret)
	}
	if r.leaseID != 0 {
		b = appendFixed(b, 3, r.leaseID)
		b = appendFixed(b, 4, r.elementsAddr)
		b = appendFixed(b, 5, r.idAddr)
		b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), uint64(r.dtype))
		for _, d := range r.shape {
			b = protowire.AppendVarint(protowire.AppendTag(b, 7, protowire.VarintType), uint64(d))
		}
	}
	for i := range r.values {
		b = appendValue(b, &r.values[i])
	}
	for _, i := range r.single {
		b = protowire.AppendVarint(protowire.AppendTag(b, 9, protowire.VarintType), uint64(i))
	}
	b = appendBool(b, 10, r.acceptsBatches)
	if r.slot != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, 11, protowire.VarintType), r.slot)
	}
	return &anypb.Any{TypeUrl: replyType, Value: b}
}

// release releases the tensors of a batch.
func (r *reply) release() {
	for i := range r.values {
		r.values[i].Tensor.Release()
	}
}

func appendBool(b []byte, field protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), 1)
}

func appendFixed(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}

// decodeOffer returns the offer of a request, and false if there is none or it is invalid.
func decodeOffer(options *anypb.Any) (o offer, ok bool) {
	if !hasType(options, offerType) {
		return o, false
	}
	err := parseFields(options.GetValue(), func(field int, v uint64, b []byte) {
		switch field {
		case 1:
			o.channel = v
		case 2:
			o.fetch = v
		case 3:
			o.probe = v != 0
		case 4:
			o.moreKeys = append(o.moreKeys, string(b))
		}
	})
	return o, err == nil && len(o.moreKeys) < maxBatchKeys
}

// decodeReply returns the reply of a response. The shape and type of a lease are those of a
// lendable tensor.
func decodeReply(options *anypb.Any) (*reply, error) {
	if !hasType(options, replyType) {
		return nil, errMalformed
	}
	r := &reply{}
	var bad error
	err := parseFields(options.GetValue(), func(field int, v uint64, b []byte) {
		switch field {
		case 1:
			r.socket = string(b)
		case 2:
			r.secret = b
		case 3:
			r.leaseID = v
		case 4:
			r.elementsAddr = v
		case 5:
			r.idAddr = v
		case 6:
			r.dtype = tensor.DType(min(v, math.MaxUint8))
		case 7:
			if len(r.shape) <= tensor.MaxRank {
				r.shape = append(r.shape, int64(v))
			}
		case 8:
			value, err := decodeValue(b)
			if err != nil {
				bad = err
				return
			}
			r.values = append(r.values, value)
		case 9:
			r.single = append(r.single, int(min(v, math.MaxInt32)))
		case 10:
			r.acceptsBatches = v != 0
		case 11:
			r.slot = v
		}
	})
	if err == nil {
		err = bad
	}
	switch {
	case err != nil:
		r.release()
		return nil, err
	case r.leaseID != 0 && (!lendable(r.dtype) || r.shape.Check() != nil):
		r.release()
		return nil, errMalformed
	}
	return r, nil
}

// hasType reports whether options contain a message type, with any URL prefix.
func hasType(options *anypb.Any, kind string) bool {
	name := options.GetTypeUrl()
	return name[strings.LastIndexByte(name, '/')+1:] == kind[strings.LastIndexByte(kind, '/')+1:]
}

// parseFields calls set for each field of a message: with the value of a number, or with bytes.
func parseFields(b []byte, set func(field int, v uint64, b []byte)) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errMalformed
		}
		b = b[n:]
		var v uint64
		var value []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			value, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return errMalformed
		}
		b = b[n:]
		set(int(field), v, value)
	}
	return nil
}
