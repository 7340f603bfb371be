package samehost

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/tensor"
)

func TestOptions(t *testing.T) {
	for _, o := range []offer{{}, {channel: 5}, {channel: 1<<64 - 1, redeem: 6}, {greets: true}, {also: []string{"a", "b"}}} {
		if got, ok := decodeOffer(o.encode()); !ok || !reflect.DeepEqual(got, o) {
			t.Errorf("got %v, want %v", got, o)
		}
	}
	for _, r := range []reply{
		{socket: "@a", secret: []byte{1, 2}},
		{ticket: 1, elements: 1 << 63, word: 3, dtype: tensor.Float32, shape: tensor.Shape{2, 0, 1 << 40}},
		{ticket: 1, dtype: tensor.Int8},
	} {
		got, err := decodeReply(r.encode())
		if err != nil || !reflect.DeepEqual(*got, r) {
			t.Errorf("got %v, %v, want %v", got, err, r)
		}
	}
	if _, ok := decodeOffer(&anypb.Any{TypeUrl: "type.googleapis.com/tensorflow.RecvBufRespExtra"}); ok {
		t.Error("another's options are an offer")
	}
	for _, r := range []reply{
		{ticket: 1}, {ticket: 1, dtype: tensor.String}, {ticket: 1, dtype: tensor.Bool}, {ticket: 1, dtype: 250},
		{ticket: 1, dtype: tensor.Float32, shape: tensor.Shape{-1}},
		{ticket: 1, dtype: tensor.Float32, shape: tensor.Shape{1 << 40, 1 << 40}},
		{ticket: 1, dtype: tensor.Float32, shape: make(tensor.Shape, 300)},
	} {
		if got, err := decodeReply(r.encode()); err == nil {
			t.Errorf("%v is taken for %v", r, got)
		}
	}
}

// Whatever comes, what is understood means the same when it is written down again.
func FuzzOptions(f *testing.F) {
	for _, r := range []reply{{socket: "@a", secret: []byte{1}}, {ticket: 1, word: 2, elements: 3, dtype: tensor.Int32, shape: tensor.Shape{4, 5}}} {
		f.Add(r.encode().Value)
	}
	f.Add((&offer{channel: 1, redeem: 2}).encode().Value)
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, ok := decodeOffer(&anypb.Any{TypeUrl: offerType, Value: data}); ok {
			if again, ok := decodeOffer(o.encode()); !ok || !reflect.DeepEqual(again, o) {
				t.Errorf("%v became %v", o, again)
			}
		}
		r, err := decodeReply(&anypb.Any{TypeUrl: replyType, Value: data})
		if err != nil || r.ticket == 0 {
			return
		}
		again, err := decodeReply(r.encode())
		if err != nil || again.ticket != r.ticket || again.elements != r.elements || again.dtype != r.dtype || !again.shape.Equal(r.shape) {
			t.Errorf("%v became %v, %v", r, again, err)
		}
	})
}
