package pb_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/proto/pb"
)

func TestTypeURL(t *testing.T) {
	for _, tt := range []struct {
		message proto.Message
		want    string
	}{
		{&pb.RecvBufRespExtra{}, "type.googleapis.com/tensorflow.RecvBufRespExtra"},
		{&pb.WorkerPossiblyRestarted{}, "type.googleapis.com/tensorflow.distributed_runtime.WorkerPossiblyRestarted"},
	} {
		if got := pb.TypeURL(tt.message); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestAnyRoundTrip(t *testing.T) {
	want := &pb.RecvBufRespExtra{TensorContent: [][]byte{{1, 2}, {3}}}
	packed, err := pb.MarshalAny(want)
	if err != nil {
		t.Fatal(err)
	}
	var got pb.RecvBufRespExtra
	if err := pb.UnmarshalAny(packed, &got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(&got, want) {
		t.Errorf("got %v, want %v", &got, want)
	}
}

func TestUnmarshalAnyRejects(t *testing.T) {
	for name, packed := range map[string]*anypb.Any{
		"nothing":      nil,
		"another type": {TypeUrl: "type.googleapis.com/tensorflow.GraphDef"},
		"our name":     {TypeUrl: "type.googleapis.com/weft.tensorflow.RecvBufRespExtra"},
		"bad bytes":    {TypeUrl: "type.googleapis.com/tensorflow.RecvBufRespExtra", Value: []byte{0xff}},
	} {
		if err := pb.UnmarshalAny(packed, &pb.RecvBufRespExtra{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
