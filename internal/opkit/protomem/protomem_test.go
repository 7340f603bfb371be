package protomem

import (
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// The estimate is about what decoding allocates, with the smaller lists that lists grow from.
func TestEstimate(t *testing.T) {
	var floats pb.Feature
	floats.Kind = &pb.Feature_FloatList{FloatList: &pb.FloatList{Value: make([]float32, 100_000)}}
	var texts pb.Feature
	texts.Kind = &pb.Feature_BytesList{BytesList: &pb.BytesList{Value: make([][]byte, 100_000)}}
	for _, c := range []struct {
		name string
		m    proto.Message
		wire []byte
	}{
		{"empty values of a summary", &pb.Summary{}, []byte(strings.Repeat("\x0a\x00", 100_000))},
		{"values of a summary", &pb.Summary{}, []byte(strings.Repeat("\x0a\x05\x15\x00\x00\x80\x3f", 100_000))},
		{"packed numbers", &pb.Feature{}, mustMarshal(t, &floats)},
		{"texts", &pb.Feature{}, mustMarshal(t, &texts)},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := proto.Unmarshal(c.wire, c.m); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		got, took := size(c.m.ProtoReflect().Descriptor(), c.wire, 0), int64(after.TotalAlloc-before.TotalAlloc)
		if got < took/4 || got > 8*took {
			t.Errorf("%s: the estimate is %d bytes, and decoding takes %d", c.name, got, took)
		}
	}
}

func TestTextMemory(t *testing.T) {
	empty := TextMemory("")
	for text, want := range map[string]int64{
		`{"a": [1, 2]}`:    Message + 3*Value + 13,
		`a { b: "{{\"{" }`: Message + Value + 16,
	} {
		if got := TextMemory(text) - empty; got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}

func mustMarshal(t *testing.T, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
