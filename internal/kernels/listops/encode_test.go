package listops

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// sample returns a list with set and unset elements, and its metadata as TensorFlow encodes it.
func sample() (*List, []byte) {
	l := &List{dtype: tensor.Float32, elem: tensor.MakePartial(2, -1, 0), limit: -1, items: vector{}.resize(300)}
	for i := range 300 {
		if i != 1 && i != 299 {
			row := tensor.Vector[float32](float32(i))
			l.items = l.items.set(i, &row)
		}
	}
	return l, []byte{
		2, 1, 0xab, 2, // two unset elements: 1 and 299
		1,                                                          // float
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, // no limit: -1
		// the shape
		0x12, 2, 0x08, 2, 0x12, 11, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x12, 0,
	}
}

// TestHugeListIsNotSent encodes a list whose unset positions exceed the size of a message.
func TestHugeListIsNotSent(t *testing.T) {
	l := &List{dtype: tensor.Float32, limit: -1, items: vector{}.resize(1<<31 - 1)}
	if _, err := l.EncodeVariant(); status.CodeOf(err) != status.Internal || !strings.Contains(err.Error(), "2147483647 tensors that are not set") {
		t.Errorf("got %v", err)
	}
}

func TestEncode(t *testing.T) {
	l, want := sample()
	v, err := l.EncodeVariant()
	if err != nil {
		t.Fatal(err)
	}
	if v.TypeName != "tensorflow::TensorList" || !bytes.Equal(v.Metadata, want) || len(v.Tensors) != 298 {
		t.Errorf("type %s, metadata %x, %d tensors\nwant metadata %x", v.TypeName, v.Metadata, len(v.Tensors), want)
	}
	back, err := v.Decode()
	if err != nil {
		t.Fatal(err)
	}
	same(t, back.(*List), l)
}

func same(t *testing.T, got, want *List) {
	t.Helper()
	if got.dtype != want.dtype || got.limit != want.limit || !got.elem.Equal(want.elem) || got.items.n != want.items.n {
		t.Errorf("list of %d %v of %v up to %d, want %d %v of %v up to %d", got.items.n, got.dtype, got.elem, got.limit,
			want.items.n, want.dtype, want.elem, want.limit)
		return
	}
	for i := range want.items.n {
		a, b := got.items.get(i), want.items.get(i)
		if (a == nil) != (b == nil) || a != nil && !a.SharesBuffer(b) {
			t.Fatalf("element %d is %v, want %v", i, a, b)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	one := tensor.Vector[float32](1)
	for name, v := range map[string]tensor.EncodedVariant{
		"nothing":             {},
		"cut short":           {Metadata: []byte{0, 1}},
		"too many missing":    {Metadata: []byte{0xff, 0x7f, 1, 1}},
		"no such type":        {Metadata: []byte{0, 99, 1}},
		"shape cut short":     {Metadata: []byte{0, 1, 1, 0x12, 9}},
		"negative dimension":  {Metadata: []byte{0, 1, 1, 0x12, 11, 8, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}},
		"tensor of a type":    {Metadata: []byte{0, 3, 1}, Tensors: []tensor.Tensor{one}},
		"one missing twice":   {Metadata: []byte{2, 0, 0, 1, 1}, Tensors: []tensor.Tensor{one}},
		"missing beyond":      {Metadata: []byte{1, 9, 1, 1}},
		"tensors without end": {Metadata: []byte{1, 9}, Tensors: []tensor.Tensor{one}},
	} {
		v.TypeName = typeName
		if got, err := v.Decode(); err == nil {
			t.Errorf("%s: decoded as %v", name, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	_, meta := sample()
	f.Add(meta, 298)
	f.Add([]byte{0, 1, 7, 0x18, 1}, 2)
	f.Fuzz(func(t *testing.T, meta []byte, n int) {
		v := tensor.EncodedVariant{TypeName: typeName, Metadata: meta}
		for i := range min(max(n, 0), 400) {
			v.Tensors = append(v.Tensors, tensor.Vector(float32(i)))
		}
		got, err := v.Decode()
		if err != nil {
			return
		}
		again, err := got.(*List).EncodeVariant()
		if err != nil {
			t.Fatal(err)
		}
		back, err := again.Decode()
		if err != nil {
			t.Fatal(err)
		}
		same(t, back.(*List), got.(*List))
	})
}
