package listops

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const typeName = "tensorflow::TensorList"

func init() { tensor.RegisterVariant(typeName, decode) }

// maxMissing is the largest number of unset elements in an encoded list. Half of that many
// positions take five bytes each and most others four, which exceeds the 2 GiB limit of a message.
// Such a list still takes little memory in this process.
const maxMissing = 1 << 29

// missingBytes is the memory of an entry in the set of unset elements while a list is decoded.
const missingBytes = 64

// EncodeVariant returns TensorFlow's encoded form of a list. Its tensors are the elements that are
// set. Its metadata holds, as variable-length integers, the number and positions of the unset
// elements, the element type and the maximum number of elements. The element shape follows as a
// TensorShapeProto.
func (l *List) EncodeVariant() (tensor.EncodedVariant, error) {
	out := tensor.EncodedVariant{TypeName: typeName}
	l, err := l.movedTo(nil)
	if err != nil {
		return out, err
	}
	var positions []int
	for i := range l.items.all() {
		positions = membudget.Append(positions, i)
	}
	missing := l.items.n - len(positions)
	if missing > maxMissing {
		return out, status.Internalf("Cannot encode a list of %d tensors that are not set: their positions exceed the 2GB protobuf limit", missing)
	}
	for _, t := range l.items.all() {
		out.Tensors = membudget.Append(out.Tensors, t.Retain())
	}
	size := (missing + 1) * len(binary.AppendUvarint(nil, uint64(l.items.n)))
	if !membudget.Take(int64(size)) {
		return out, status.ResourceExhaustedf("OOM when encoding a list of %d tensors that are not set", missing)
	}
	//sizedmake:ok asked for above
	meta := binary.AppendUvarint(make([]byte, 0, size), uint64(missing))
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
		return nil, status.InvalidArgumentf("an encoded tensor list has %d uninitialized elements in %d bytes of metadata", count, len(v.Metadata))
	}
	missing := map[uint64]bool{}
	var meter membudget.Meter
	for range count {
		if !meter.Take(missingBytes) {
			return nil, status.ResourceExhaustedf("OOM when decoding a list with %d uninitialized elements", count)
		}
		missing[d.uvarint()] = true
	}
	l.dtype, l.limit = tensor.DType(d.uvarint()), int(int64(d.uvarint()))
	if l.elem = d.shape(); d.bad || !l.dtype.Valid() {
		return nil, status.InvalidArgumentf("an encoded tensor list has malformed metadata")
	}
	l.items = l.items.resize(len(v.Tensors) + int(count))
	elems := v.Tensors
	for i := range l.items.n {
		if missing[uint64(i)] {
			continue
		}
		if len(elems) == 0 || elems[0].DType() != l.dtype {
			return nil, status.InvalidArgumentf("an encoded tensor list of type %v lacks element %d of that type", l.dtype, i)
		}
		l.items, elems = l.items.set(i, &elems[0]), elems[1:]
	}
	if len(elems) > 0 {
		return nil, status.InvalidArgumentf("an encoded tensor list has %d surplus elements", len(elems))
	}
	return l, nil
}

// decoder decodes metadata. After an error, every value is zero and bad is set.
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

// Field numbers of TensorShapeProto and of its dimensions.
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

// shape decodes the rest as a TensorShapeProto.
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

// fields calls f for each field of a message, which is the rest of the input.
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
