package worker

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

func TestBuffersAreTheMessageOfTensorFlow(t *testing.T) {
	for _, content := range []string{"", "x", "some bytes"} {
		sent := bufferToProto([]byte(content))
		var extra pb.RecvBufRespExtra
		if err := proto.Unmarshal(sent.Value, &extra); err != nil {
			t.Fatal(err)
		}
		if got := string(joined(&extra)); got != content {
			t.Errorf("sent %q, want %q", got, content)
		}
		dst := make([]byte, len(content))
		if err := bufferFromProto(sent, dst); err != nil || string(dst) != content {
			t.Errorf("got %q, %v, want %q", dst, err, content)
		}
	}
}

func joined(extra *pb.RecvBufRespExtra) (out []byte) {
	for _, piece := range extra.TensorContent {
		out = append(out, piece...)
	}
	return out
}

// TestBuffersInPieces reads buffers in pieces of 4 KiB, as TensorFlow sends them.
func TestBuffersInPieces(t *testing.T) {
	value, err := proto.Marshal(&pb.RecvBufRespExtra{TensorContent: [][]byte{[]byte("ab"), nil, []byte("cde")}})
	if err != nil {
		t.Fatal(err)
	}
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType), 300)
	for _, tt := range []struct {
		what, url string
		value     []byte
		size      int
		ok        bool
	}{
		{"all of it", bufferType, value, 5, true},
		{"a field that is not known", bufferType, append(unknown, value...), 5, true},
		{"too much", bufferType, value, 4, false},
		{"too little", bufferType, value, 6, false},
		{"another message", "type.googleapis.com/tensorflow.Other", value, 5, false},
		{"half a tag", bufferType, []byte{0x80}, 0, false},
		{"half a piece", bufferType, value[:3], 5, false},
		{"half a field", bufferType, unknown[:1], 0, false},
	} {
		dst := make([]byte, tt.size)
		err := bufferFromProto(&anypb.Any{TypeUrl: tt.url, Value: tt.value}, dst)
		if tt.ok != (err == nil) || tt.ok && string(dst) != "abcde" || !tt.ok && status.CodeOf(err) != status.Internal {
			t.Errorf("%s: got %q, %v", tt.what, dst, err)
		}
	}
}

func FuzzBufferFromProto(f *testing.F) {
	f.Add(bufferToProto([]byte("some bytes")).Value, 10)
	f.Add([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, 3)
	f.Fuzz(func(t *testing.T, value []byte, size int) {
		dst := make([]byte, max(0, min(size, 1<<12)))
		if err := bufferFromProto(&anypb.Any{TypeUrl: bufferType, Value: value}, dst); err != nil {
			return
		}
		var extra pb.RecvBufRespExtra
		if err := proto.Unmarshal(value, &extra); err == nil && string(joined(&extra)) != string(dst) {
			t.Errorf("got %q, want %q", dst, joined(&extra))
		}
	})
}

// The copy of a buffer asks for its memory.
func TestMemoryOfBuffer(t *testing.T) {
	content := make([]byte, 1<<20)
	if _, err := bufferResponse("k", content); err != nil {
		t.Fatal(err)
	}
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1)
	if _, err := bufferResponse("k", content); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
