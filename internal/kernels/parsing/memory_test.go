package parsing

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/format/fileio"
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
