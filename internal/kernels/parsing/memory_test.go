package parsing

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Fields and numbers that take a byte or two of text are counted.
func TestMemoryOfText(t *testing.T) {
	kerneltest.WantExhausted(t, 128<<20, "DecodeCSV", opdef.Attrs{"OUT_TYPE": []tensor.DType{tensor.String}},
		tensor.Vector(strings.Repeat(",", 8<<20)), tensor.Scalar("x"))
	numbers := `{"features":{"feature":{"a":{"int64List":{"value":[` + strings.Repeat("1,", 4<<20) + `1]}}}}}`
	kerneltest.WantExhausted(t, 128<<20, "DecodeJSONExample", nil, tensor.Scalar(numbers))
}

// A window is taken at once, whatever follows the header of a frame.
func TestMemoryOfWindows(t *testing.T) {
	const content = 500 << 20
	for name, frame := range map[string][]byte{
		"window":         {0x28, 0xb5, 0x2f, 0xfd, 0x80, 19 << 3, 0, 0, 0, 0, 1, 0, 0},
		"single segment": {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0, 1, 0, 0},
	} {
		binary.LittleEndian.PutUint32(frame[len(frame)-7:], content)
		t.Log(name)
		kerneltest.WantExhausted(t, 128<<20, "DecodeCompressed", opdef.Attrs{"compression_type": "ZSTD"}, tensor.Scalar(string(frame)))
	}
}

// A message takes two bytes of a source of descriptors.
func TestMemoryOfDescriptors(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(128 << 20)
	_, err := newMessages(fileio.Files{}, bytesSource+strings.Repeat("\x0a\x00", 2<<20))
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// The text that strings share is in a message once for each of them.
func TestMemoryOfSerializedTensor(t *testing.T) {
	kerneltest.WantExhausted(t, 256<<20, "SerializeTensor", opdef.Attrs{"T": tensor.String}, kerneltest.SharedText(1<<20, 1<<10))
}

// shared returns a vector of n strings that share a text.
func shared(n int, text string) tensor.Tensor {
	return tensor.Vector(slices.Repeat([]string{text}, n)...)
}

// recordOf returns a SequenceExample, which is an Example too, with one feature of a text, and
// a feature list with many empty steps.
func recordOf(t *testing.T, text string, steps int) string {
	t.Helper()
	feature := &pb.Feature{Kind: &pb.Feature_BytesList{BytesList: &pb.BytesList{Value: [][]byte{[]byte(text)}}}}
	list := &pb.FeatureList{Feature: slices.Repeat([]*pb.Feature{{}}, steps)}
	b, err := proto.Marshal(&pb.SequenceExample{
		Context:      &pb.Features{Feature: map[string]*pb.Feature{"a": feature}},
		FeatureLists: &pb.FeatureLists{FeatureList: map[string]*pb.FeatureList{"l": list}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	exampleAttrs = opdef.Attrs{
		"Nsparse": int64(0), "Ndense": int64(1), "sparse_types": []tensor.DType{}, "Tdense": []tensor.DType{tensor.String},
		"dense_shapes": []tensor.PartialShape{tensor.MakePartial()},
	}
	sequenceAttrs = opdef.Attrs{
		"Nfeature_list_sparse": int64(1), "feature_list_sparse_types": []tensor.DType{tensor.Int64}, "feature_list_sparse_keys": []string{"l"},
		"feature_list_dense_missing_assumed_empty": []string{}, "context_sparse_keys": []string{}, "context_dense_keys": []string{},
		"feature_list_dense_keys": []string{},
	}
)

// Records that share their text take little memory. Their values are copies, and their steps are
// lists.
func TestMemoryOfSharedRecords(t *testing.T) {
	long := shared(1<<12, recordOf(t, strings.Repeat("x", 64<<10), 0))
	kerneltest.WantExhausted(t, 96<<20, "ParseExample", exampleAttrs, long, tensor.Vector[string](), tensor.Vector("a"), tensor.Scalar(""))
	steps := shared(32<<10, recordOf(t, "", 600))
	kerneltest.WantExhausted(t, 96<<20, "ParseSequenceExample", sequenceAttrs, steps, tensor.Vector[string]())
}

// Quotes within a quoted field are removed in a copy.
func TestMemoryOfQuotedFields(t *testing.T) {
	attrs := opdef.Attrs{"OUT_TYPE": []tensor.DType{tensor.String}}
	kerneltest.WantExhausted(t, 96<<20, "DecodeCSV", attrs, shared(1<<12, `"""`+strings.Repeat("x", 64<<10)+`"`), tensor.Scalar("x"))
	got, err := kerneltest.TryWithin(0, "DecodeCSV", attrs, tensor.Vector(`"a""b"`, `""`, `"c"`, `""""`), tensor.Scalar("d"))
	if err != nil || strings.Join(tensor.Values[string](&got[0]), " ") != `a"b d c "` {
		t.Errorf("got %v, %v", got, err)
	}
}

// The values of fields may share their text. Their messages do not.
func TestMemoryOfEncodedProtos(t *testing.T) {
	values := kerneltest.SharedText(1<<12, 64<<10)
	values, err := values.WithShape(tensor.Shape{1, 1 << 12})
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := tensor.FromSlice(tensor.Shape{1, 1}, []int32{1 << 12})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 96<<20, "EncodeProto", opdef.Attrs{
		"field_names": []string{"value"}, "message_type": "tensorflow.BytesList", "Tinput_types": []tensor.DType{tensor.String},
	}, sizes, values)
}

// Strings that share a long text take time and no memory.
func TestParsersEndWithStep(t *testing.T) {
	record := shared(4, recordOf(t, strings.Repeat("x", 64<<10), 0))
	kerneltest.WantCancelled(t, "ParseExample", exampleAttrs, record, tensor.Vector[string](), tensor.Vector("b"), tensor.Scalar(""))
	kerneltest.WantCancelled(t, "DecodeCSV", opdef.Attrs{"OUT_TYPE": []tensor.DType{tensor.String}}, kerneltest.SharedText(4, 64<<10), tensor.Scalar("x"))
	kerneltest.WantCancelled(t, "DecodeJSONExample", nil, shared(4, `{"features":{}}`+strings.Repeat(" ", 64<<10)))
	kerneltest.WantCancelled(t, "DecodeProtoV2", opdef.Attrs{
		"message_type": "tensorflow.BytesList", "field_names": []string{"value"}, "output_types": []tensor.DType{tensor.String},
	}, shared(4, strings.Repeat("\x0a\x00", 32<<10)))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(make([]byte, 1<<20))
	w.Close()
	kerneltest.WantCancelled(t, "DecodeCompressed", opdef.Attrs{"compression_type": "GZIP"}, shared(4, packed.String()))
}
