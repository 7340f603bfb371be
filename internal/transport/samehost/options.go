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

// What tasks say to each other in transport_options is messages of protocol buffers, written and
// read by hand.
const (
	offerType = "type.googleapis.com/weft.TransferOffer"
	replyType = "type.googleapis.com/weft.TransferReply"
)

// offer is the borrower's part.
type offer struct {
	channel uint64   // 1: which it has to this process; 0 for none
	redeem  uint64   // 2: the ticket of a tensor that it could not read
	greets  bool     // 3: it wants to know what the lender can do
	also    []string // 4: further keys that it asks for
}

// reply is the lender's part: an invitation with the first tensor, or what is lent.
type reply struct {
	socket string // 1
	secret []byte // 2

	ticket   uint64       // 3
	elements uint64       // 4: address
	word     uint64       // 5: address at which the ticket lies
	dtype    tensor.DType // 6
	shape    tensor.Shape // 7

	values  []rendezvous.Value // 8: of several that were asked for, as far as they are there
	alone   []int              // 9: those of them that are to be asked for alone
	batches bool               // 10: the lender takes requests for several tensors
	// 11: where to give back what is lent, from 1 on; 0 for the channel itself
	slot uint64
}

var errMalformed = errors.New("malformed transport options")

func (o *offer) encode() *anypb.Any {
	size := 2 * (1 + 8)
	for _, key := range o.also {
		size += 1 + protowire.SizeBytes(len(key))
	}
	b := appendFixed(make([]byte, 0, size+2), 1, o.channel)
	b = appendFixed(b, 2, o.redeem)
	b = appendBool(b, 3, o.greets)
	for _, key := range o.also {
		b = protowire.AppendString(protowire.AppendTag(b, 4, protowire.BytesType), key)
	}
	return &anypb.Any{TypeUrl: offerType, Value: b}
}

func (r *reply) encode() *anypb.Any {
	size := 64 + len(r.socket) + len(r.secret) + 11*len(r.shape) + 11*len(r.alone)
	for i := range r.values {
		size += 1 + protowire.SizeBytes(valueSize(&r.values[i]))
	}
	b := make([]byte, 0, size)
	if r.socket != "" {
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), r.socket)
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), r.secret)
	}
	if r.ticket != 0 {
		b = appendFixed(b, 3, r.ticket)
		b = appendFixed(b, 4, r.elements)
		b = appendFixed(b, 5, r.word)
		b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), uint64(r.dtype))
		for _, d := range r.shape {
			b = protowire.AppendVarint(protowire.AppendTag(b, 7, protowire.VarintType), uint64(d))
		}
	}
	for i := range r.values {
		b = appendValue(b, &r.values[i])
	}
	for _, i := range r.alone {
		b = protowire.AppendVarint(protowire.AppendTag(b, 9, protowire.VarintType), uint64(i))
	}
	b = appendBool(b, 10, r.batches)
	if r.slot != 0 {
		b = protowire.AppendVarint(protowire.AppendTag(b, 11, protowire.VarintType), r.slot)
	}
	return &anypb.Any{TypeUrl: replyType, Value: b}
}

// release ends the references that values hold.
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

// decodeOffer returns the offer of a request, and false if it has none that can be understood.
func decodeOffer(options *anypb.Any) (o offer, ok bool) {
	if !is(options, offerType) {
		return o, false
	}
	err := fields(options.GetValue(), func(field int, v uint64, b []byte) {
		switch field {
		case 1:
			o.channel = v
		case 2:
			o.redeem = v
		case 3:
			o.greets = v != 0
		case 4:
			o.also = append(o.also, string(b))
		}
	})
	return o, err == nil && len(o.also) < maxBatch
}

// decodeReply returns the reply of a response. It has been checked as far as nothing else needs to
// be known: the shape is that of a tensor of plain elements.
func decodeReply(options *anypb.Any) (*reply, error) {
	if !is(options, replyType) {
		return nil, errMalformed
	}
	r := &reply{}
	var bad error
	err := fields(options.GetValue(), func(field int, v uint64, b []byte) {
		switch field {
		case 1:
			r.socket = string(b)
		case 2:
			r.secret = b
		case 3:
			r.ticket = v
		case 4:
			r.elements = v
		case 5:
			r.word = v
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
			r.alone = append(r.alone, int(min(v, math.MaxInt32)))
		case 10:
			r.batches = v != 0
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
	case r.ticket != 0 && (!lendable(r.dtype) || r.shape.Check() != nil):
		r.release()
		return nil, errMalformed
	}
	return r, nil
}

func is(options *anypb.Any, kind string) bool {
	name := options.GetTypeUrl()
	return name[strings.LastIndexByte(name, '/')+1:] == kind[strings.LastIndexByte(kind, '/')+1:]
}

// fields calls set for the fields of a message: with the value of a number, or with bytes.
func fields(b []byte, set func(field int, v uint64, b []byte)) error {
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
