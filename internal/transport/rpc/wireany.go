package rpc

import "google.golang.org/protobuf/types/known/anypb"

// Transport options are encoded by hand: small tensors travel in them, and the protocol library
// would copy those once more on either side.

// anyMessage encodes options, whose value must not change until the message has been sent.
func (w *writer) anyMessage(field int, a *anypb.Any) {
	size := 0
	for _, n := range [...]int{len(a.TypeUrl), len(a.Value)} {
		if n > 0 {
			size += 1 + uvarintSize(uint64(n)) + n
		}
	}
	w.key(field, lengthDelimited)
	w.uvarint(uint64(size))
	w.text(1, a.TypeUrl)
	if len(a.Value) > 0 {
		w.key(2, lengthDelimited)
		w.uvarint(uint64(len(a.Value)))
		w.bytes(a.Value, nil)
	}
}

// anyMessage decodes options and merges them with a, which may be nil. The value shares memory with
// the message.
func (r *reader) anyMessage(a *anypb.Any) *anypb.Any {
	if a == nil {
		a = &anypb.Any{}
	}
	outer := r.enter()
	for r.more() {
		switch key := r.key(); key {
		case 1<<3 | lengthDelimited:
			a.TypeUrl = r.text()
		case 2<<3 | lengthDelimited:
			outer := r.enter()
			a.Value = r.rest()
			r.leave(outer)
		default:
			r.skip(key)
		}
	}
	r.leave(outer)
	return a
}
