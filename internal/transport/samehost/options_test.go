package samehost

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/tensor"
)

func TestOptions(t *testing.T) {
	for _, o := range []offer{{}, {channel: 5}, {channel: 1<<64 - 1, fetch: 6}, {probe: true}, {moreKeys: []string{"a", "b"}}} {
		if got, ok := decodeOffer(o.encode()); !ok || !reflect.DeepEqual(got, o) {
			t.Errorf("got %v, want %v", got, o)
		}
	}
	for _, r := range []reply{
		{socket: "@a", secret: []byte{1, 2}},
		{leaseID: 1, elementsAddr: 1 << 63, idAddr: 3, dtype: tensor.Float32, shape: tensor.Shape{2, 0, 1 << 40}},
		{leaseID: 1, dtype: tensor.Int8},
	} {
		got, err := decodeReply(r.encode())
		if err != nil || !reflect.DeepEqual(*got, r) {
			t.Errorf("got %v, %v, want %v", got, err, r)
		}
	}
	if _, ok := decodeOffer(&anypb.Any{TypeUrl: "type.googleapis.com/tensorflow.RecvBufRespExtra"}); ok {
		t.Error("options of another type are decoded as an offer")
	}
	for _, r := range []reply{
		{leaseID: 1}, {leaseID: 1, dtype: tensor.String}, {leaseID: 1, dtype: tensor.Bool}, {leaseID: 1, dtype: 250},
		{leaseID: 1, dtype: tensor.Float32, shape: tensor.Shape{-1}},
		{leaseID: 1, dtype: tensor.Float32, shape: tensor.Shape{1 << 40, 1 << 40}},
		{leaseID: 1, dtype: tensor.Float32, shape: make(tensor.Shape, 300)},
	} {
		if got, err := decodeReply(r.encode()); err == nil {
			t.Errorf("%v is decoded as %v", r, got)
		}
	}
}

// Any bytes that can be decoded have the same meaning after encoding them again.
func FuzzOptions(f *testing.F) {
	for _, r := range []reply{{socket: "@a", secret: []byte{1}}, {leaseID: 1, idAddr: 2, elementsAddr: 3, dtype: tensor.Int32, shape: tensor.Shape{4, 5}}} {
		f.Add(r.encode().Value)
	}
	f.Add((&offer{channel: 1, fetch: 2}).encode().Value)
	f.Fuzz(func(t *testing.T, data []byte) {
		if o, ok := decodeOffer(&anypb.Any{TypeUrl: offerType, Value: data}); ok {
			if again, ok := decodeOffer(o.encode()); !ok || !reflect.DeepEqual(again, o) {
				t.Errorf("%v is decoded as %v", o, again)
			}
		}
		r, err := decodeReply(&anypb.Any{TypeUrl: replyType, Value: data})
		if err != nil || r.leaseID == 0 {
			return
		}
		again, err := decodeReply(r.encode())
		if err != nil || again.leaseID != r.leaseID || again.elementsAddr != r.elementsAddr || again.dtype != r.dtype || !again.shape.Equal(r.shape) {
			t.Errorf("%v is decoded as %v, %v", r, again, err)
		}
	})
}
