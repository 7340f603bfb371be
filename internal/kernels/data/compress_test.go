package data

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// mixed is an element with a tensor of every kind.
func mixed() element {
	none, _ := tensor.Zeros(tensor.Float32, tensor.Shape{0, 3})
	return element{tensor.Vector("ab", "", "c"), tensor.Vector[int32](1, 2), none, tensor.Scalar[float32](2.5)}
}

// compressedMixed is the metadata of the variant that TensorFlow 2.21 creates for mixed.
const compressedMixed = "0a110f38616263010000000200000000002040120d08071204120208032203020001120b0803120412020802220108120a08011206120012020803120708011200220104"

func (b *bench) compress(e element) tensor.Tensor {
	b.Helper()
	out, err := b.run("c", "CompressElement", opdef.Attrs{"input_types": specOf(e).types}, e...)
	if err != nil {
		b.Fatal(err)
	}
	return out[0]
}

// A component takes two bytes of a message.
func TestMemoryOfCompressed(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(128 << 20)
	_, err := decodeCompressed(tensor.EncodedVariant{TypeName: compressedName, Metadata: bytes.Repeat([]byte{0x12, 0}, 2<<20)})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

func TestCompressElement(t *testing.T) {
	b := newBench(t)
	want := append(mixed(), tensor.Scalar(tensor.VariantValue{Value: tensor.EncodedVariant{TypeName: "other", Metadata: []byte("x")}}))
	c := b.compress(want)
	s := specOf(want)
	got, err := b.run("u", "UncompressElement", opdef.Attrs{"output_types": s.types, "output_shapes": s.shapes}, c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want[:4] {
		if d := kerneltest.Diff(&got[i], &want[i], 0); d != "" {
			t.Errorf("component %d: %s", i, d)
		}
	}
	v := tensor.Value[tensor.VariantValue](&got[4]).Value.(tensor.EncodedVariant)
	if v.TypeName != "other" || string(v.Metadata) != "x" {
		t.Errorf("the variant is %v", v)
	}

	for _, bad := range []struct {
		types []tensor.DType
		text  string
	}{
		{s.types[:2], "Expected 2 outputs from uncompress, but got 5"},
		{slices.Repeat([]tensor.DType{tensor.String}, 5), "Expected a tensor of type string but got a tensor of type int32"},
	} {
		_, err := b.run("bad", "UncompressElement", opdef.Attrs{"output_types": bad.types, "output_shapes": make([]tensor.PartialShape, len(bad.types))}, c)
		if status.CodeOf(err) != status.FailedPrecondition || err.Error() != bad.text {
			t.Errorf("%v", err)
		}
	}
	one := opdef.Attrs{"output_types": s.types[:1], "output_shapes": s.shapes[:1]}
	if _, err := b.run("bad", "UncompressElement", one, b.count(0, 1)); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("dataset: %v", err)
	}
}

// TestCompressedFormat decodes data that TensorFlow wrote, and damaged data.
func TestCompressedFormat(t *testing.T) {
	metadata, err := hex.DecodeString(compressedMixed)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (element, error) {
		v, err := tensor.EncodedVariant{TypeName: compressedName, Metadata: b}.Decode()
		if err != nil {
			return nil, err
		}
		return v.(compressed).uncompress()
	}
	got, err := read(metadata)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range mixed() {
		if d := kerneltest.Diff(&got[i], &want, 0); d != "" {
			t.Errorf("component %d: %s", i, d)
		}
	}
	c := newBench(t).compress(mixed())
	v, err := tensor.Value[tensor.VariantValue](&c).Encode()
	if err != nil || v.TypeName != compressedName || hex.EncodeToString(v.Metadata) != compressedMixed {
		t.Errorf("%s %x, %v", v.TypeName, v.Metadata, err)
	}
	for i := range metadata { // change each byte in turn: the result is an error or another element
		bad := slices.Clone(metadata)
		bad[i] ^= 0x41
		if e, err := read(bad); err != nil && e != nil {
			t.Errorf("byte %d: an element and %v", i, err)
		}
	}
	if _, err := read(metadata[:len(metadata)-3]); err == nil {
		t.Error("truncated data can be decoded")
	}
}
