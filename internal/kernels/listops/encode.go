package listops

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const typeName = "tensorflow::TensorList"

func init() { tensor.RegisterVariant(typeName, decode) }

// mostMissing is how many elements that are not set may be sent: the positions of so many, of which
// half take five bytes and most others four, have more than the 2 GiB of a message. A list of more
// is small, as long as it is here.
const mostMissing = 1 << 29

// EncodeVariant returns the form in which TensorFlow sends a list: the elements that are set, and
// as metadata the number and the positions of those that are not, the type of elements and the
// largest number of them, all as variable-length integers, and the shape of elements as a
// TensorShapeProto.
func (l *List) EncodeVariant() (tensor.EncodedVariant, error) {
	out := tensor.EncodedVariant{TypeName: typeName}
	var positions []int
	for i := range l.items.all() {
		positions = append(positions, i)
	}
	missing := l.items.n - len(positions)
	if missing > mostMissing {
		return out, status.Internalf("Cannot encode a list of %d tensors that are not set: their positions exceed the 2GB protobuf limit", missing)
	}
	for _, t := range l.items.all() {
		out.Tensors = append(out.Tensors, t.Retain())
	}
	meta := binary.AppendUvarint(nil, uint64(missing))
	next := 0
	for _, set := range append(positions, l.items.n) {
		for ; next < set; next++ {
			meta = binary.AppendUvarint(meta, uint64(next))
		}
		next = set + 1
	}
	meta = binary.AppendUvarint(meta, uint64(l.dtype))
	meta = binary.AppendUvarint(meta, uint64(l.limit))
	out.Metadata = appendShape(meta, l.elem)
	return out, nil
}

func decode(v tensor.EncodedVariant) (any, error) {
	d := decoder{rest: v.Metadata}
	l := &List{}
	count := d.uvarint()
	if count > uint64(len(v.Metadata)) {
		return nil, status.InvalidArgumentf("a list of tensors says that %d elements are not set, in %d bytes", count, len(v.Metadata))
	}
	missing := make(map[uint64]bool, count)
	for range count {
		missing[d.uvarint()] = true
	}
	l.dtype, l.limit = tensor.DType(d.uvarint()), int(int64(d.uvarint()))
	if l.elem = d.shape(); d.bad || !l.dtype.Valid() {
		return nil, status.InvalidArgumentf("metadata of a list of tensors cannot be read")
	}
	l.items = l.items.resize(len(v.Tensors) + int(count))
	elems := v.Tensors
	for i := range l.items.n {
		if missing[uint64(i)] {
			continue
		}
		if len(elems) == 0 || elems[0].DType() != l.dtype {
			return nil, status.InvalidArgumentf("a list of tensors of type %v has no element %d of that type", l.dtype, i)
		}
		l.items, elems = l.items.set(i, &elems[0]), elems[1:]
	}
	if len(elems) > 0 {
		return nil, status.InvalidArgumentf("a list of tensors has %d elements more than places", len(elems))
	}
	return l, nil
}

// decoder reads metadata. After something that cannot be read everything is zero and bad is set.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// Fields of TensorShapeProto and of its dimensions.
const (
	dimField     protowire.Number = 2
	unknownField protowire.Number = 3
	sizeField    protowire.Number = 1
)

func appendShape(b []byte, s tensor.PartialShape) []byte {
	if !s.RankKnown() {
		return protowire.AppendVarint(protowire.AppendTag(b, unknownField, protowire.VarintType), 1)
	}
	for _, size := range s.Dims() {
		var dim []byte
		if size != 0 {
			dim = protowire.AppendVarint(protowire.AppendTag(dim, sizeField, protowire.VarintType), uint64(size))
		}
		b = protowire.AppendBytes(protowire.AppendTag(b, dimField, protowire.BytesType), dim)
	}
	return b
}

// shape reads a TensorShapeProto, which is all that is left.
func (d *decoder) shape() tensor.PartialShape {
	dims, unknown := []int64{}, false
	d.fields(func(field protowire.Number, kind protowire.Type, b []byte) {
		switch {
		case field == unknownField && kind == protowire.VarintType:
			v, _ := protowire.ConsumeVarint(b)
			unknown = v != 0
		case field == dimField && kind == protowire.BytesType:
			dim, _ := protowire.ConsumeBytes(b)
			inner := decoder{rest: dim}
			dims = append(dims, inner.dim())
			d.bad = d.bad || inner.bad
		}
	})
	if unknown || len(dims) > tensor.MaxRank {
		d.bad = d.bad || !unknown
		return tensor.PartialShape{}
	}
	return tensor.MakePartial(dims...)
}

func (d *decoder) dim() (size int64) {
	d.fields(func(field protowire.Number, kind protowire.Type, b []byte) {
		if field == sizeField && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(b)
			size = int64(v)
		}
	})
	d.bad = d.bad || size < -1
	return size
}

// fields calls f with the fields of a message, which is all that is left.
func (d *decoder) fields(f func(field protowire.Number, kind protowire.Type, value []byte)) {
	for len(d.rest) > 0 {
		field, kind, n := protowire.ConsumeTag(d.rest)
		if n < 0 {
			d.bad = true
			return
		}
		size := protowire.ConsumeFieldValue(field, kind, d.rest[n:])
		if size < 0 {
			d.bad = true
			return
		}
		f(field, kind, d.rest[n:n+size])
		d.rest = d.rest[n+size:]
	}
}
