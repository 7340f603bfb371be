package checkpoint

import (
	"encoding/binary"
	"io"
	"math"
	"slices"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// The elements of a tensor in a data file have one of three forms:
//
//   - Numbers are stored as in memory.
//   - Strings are stored as the varint lengths of all, the masked checksum of the lengths, and the
//     bytes of all. That checksum covers each length as a fixed number of 4 bytes, or 8 if it needs
//     them.
//   - Each variant is stored as a varint length, a VariantTensorDataProto, and the masked checksum
//     of all variants so far.
//
// The checksum in the entry covers the memory of numbers. For strings and variants it covers the
// input of the inner checksums and these checksums themselves.

// chunk is the number of bytes that are read before their checksum is computed. They are
// then still in the CPU cache.
const chunk = 256 << 10

// elements reads the elements of an entry that is within the bounds of the file.
func (b *bundle) elements(f io.ReaderAt, e *pb.BundleEntryProto, dtype tensor.DType, shape tensor.Shape) (tensor.Tensor, error) {
	var t tensor.Tensor
	var crc uint32
	var err error
	if dtype.Size() > 0 {
		if t, err = tensor.Alloc(dtype, shape); err == nil {
			crc, err = readPlain(f, e.GetOffset(), t.Bytes())
		}
	} else {
		if !membudget.Take(e.GetSize()) {
			return tensor.Tensor{}, errNoMemory
		}
		mem := make([]byte, e.GetSize())
		if _, err = readPlain(f, e.GetOffset(), mem); err == nil {
			if dtype == tensor.String {
				t, crc, err = b.decodeStrings(mem, shape)
			} else {
				t, crc, err = b.decodeVariants(mem, shape)
			}
		}
	}
	if want := crc32c.Unmask(e.GetCrc32C()); err == nil && crc != want {
		err = status.DataLossf("shard %d (%d bytes at %d): Checksum does not match: stored %08x vs. calculated on the restored bytes %08x",
			e.GetShardId(), e.GetSize(), e.GetOffset(), want, crc)
	}
	if err != nil {
		t.Release()
		return tensor.Tensor{}, err
	}
	b.normalize(&t)
	return t, nil
}

// readPlain fills mem and returns its checksum.
func readPlain(f io.ReaderAt, offset int64, mem []byte) (uint32, error) {
	crc := uint32(0)
	for part := range slices.Chunk(mem, chunk) {
		if _, err := f.ReadAt(part, offset); err != nil {
			return 0, status.DataLossf("reading %d bytes at %d: %w", len(part), offset, err)
		}
		crc = crc32c.Update(crc, part)
		offset += int64(len(part))
	}
	return crc, nil
}

// normalize converts elements to the byte order of the machine, and bools to 0 and 1.
func (b *bundle) normalize(t *tensor.Tensor) {
	mem := t.Bytes()
	if t.DType() == tensor.Bool {
		for i, v := range mem {
			mem[i] = min(v, 1)
		}
	}
	width := t.DType().Size()
	if t.DType().IsComplex() {
		width /= 2
	}
	if b.order != binary.ByteOrder(binary.BigEndian) || width < 2 {
		return
	}
	for elem := range slices.Chunk(mem, width) {
		slices.Reverse(elem)
	}
}

// appendLength appends a length in the form that checksums cover.
func appendLength(b []byte, order binary.AppendByteOrder, n uint64) []byte {
	if n > math.MaxUint32 {
		return order.AppendUint64(b, n)
	}
	return order.AppendUint32(b, uint32(n))
}

func (b *bundle) decodeStrings(mem []byte, shape tensor.Shape) (tensor.Tensor, uint32, error) {
	n := int(shape.NumElements()) // at most len(mem)
	if n == 0 && len(mem) == 0 {
		t, err := tensor.Alloc(tensor.String, shape)
		return t, 0, err
	}
	const each = 8 + 16 // bytes of a length and of the header of a string
	if !membudget.Take(int64(n)*each + int64(len(mem))) {
		return tensor.Tensor{}, 0, errNoMemory
	}
	lengths, left := make([]int, n), uint64(len(mem))
	crc := uint32(0)
	var buf [8]byte
	rest := mem
	for i := range lengths {
		v, k := binary.Uvarint(rest)
		if k <= 0 || v > left {
			return tensor.Tensor{}, 0, status.DataLossf("String lengths longer than expected")
		}
		lengths[i], rest, left = int(v), rest[k:], left-v
		crc = crc32c.Update(crc, appendLength(buf[:0], b.order, v))
	}
	if len(rest) < 4 {
		return tensor.Tensor{}, 0, status.DataLossf("the checksum of the lengths of the strings is missing")
	}
	if crc32c.Unmask(b.order.Uint32(rest)) != crc {
		return tensor.Tensor{}, 0, status.DataLossf("The length checksum does not match")
	}
	crc = crc32c.Update(crc32c.Update(crc, rest[:4]), rest[4:])
	vals := make([]string, n)
	text := string(rest[4:])
	for i, length := range lengths {
		if length > len(text) {
			return tensor.Tensor{}, 0, status.DataLossf("String lengths longer than expected")
		}
		vals[i], text = text[:length], text[length:]
	}
	if text != "" {
		return tensor.Tensor{}, 0, status.DataLossf("%d bytes after the last string", len(text))
	}
	t, err := tensor.FromSlice(shape, vals)
	return t, crc, err
}

func (b *bundle) decodeVariants(mem []byte, shape tensor.Shape) (tensor.Tensor, uint32, error) {
	p := &pb.TensorProto{Dtype: pb.DataType_DT_VARIANT, TensorShape: pbconv.ShapeToProto(shape)}
	crc := uint32(0)
	for range shape.NumElements() {
		v, k := binary.Uvarint(mem)
		if k <= 0 || v > uint64(len(mem)-k) || uint64(len(mem)-k)-v < 4 {
			return tensor.Tensor{}, 0, status.DataLossf("a variant is longer than its entry")
		}
		elem, sum := mem[k:k+int(v)], mem[k+int(v):][:4]
		mem = mem[k+int(v)+4:]
		crc = crc32c.Update(crc32c.Update(crc, b.order.AppendUint64(nil, v)), elem)
		if crc32c.Unmask(b.order.Uint32(sum)) != crc {
			return tensor.Tensor{}, 0, status.DataLossf("The checksum after Variant %d does not match", len(p.VariantVal))
		}
		crc = crc32c.Update(crc, sum)
		data := &pb.VariantTensorDataProto{}
		if ok, err := unmarshal(elem, data); err != nil {
			return tensor.Tensor{}, 0, err
		} else if !ok {
			return tensor.Tensor{}, 0, status.DataLossf("Unable to parse VariantTensorDataProto from buffer of size %d", v)
		}
		p.VariantVal = append(p.VariantVal, data)
	}
	if len(p.VariantVal) == 0 {
		t, err := tensor.Alloc(tensor.Variant, shape)
		return t, crc, err
	}
	t, err := pbconv.TensorFromProto(p)
	return t, crc, err
}

// writeElements writes the elements of a tensor and returns their number of bytes and the checksum
// for the entry.
func writeElements(w io.Writer, t *tensor.Tensor) (int64, uint32, error) {
	switch t.DType() {
	case tensor.String:
		return writeStrings(w, tensor.Values[string](t))
	case tensor.Variant:
		return writeVariants(w, t)
	default:
		crc := uint32(0)
		for part := range slices.Chunk(t.Bytes(), chunk) {
			crc = crc32c.Update(crc, part)
			if _, err := w.Write(part); err != nil {
				return 0, 0, err
			}
		}
		return int64(len(t.Bytes())), crc, nil
	}
}

func writeStrings(w io.Writer, vals []string) (int64, uint32, error) {
	const each = 3 * (binary.MaxVarintLen32 + 4) // bytes of the lengths, in slices that grow
	if !membudget.Take(each * int64(len(vals))) {
		return 0, 0, errNoMemory
	}
	var lengths, sized []byte
	for _, s := range vals {
		lengths = binary.AppendUvarint(lengths, uint64(len(s)))
		sized = appendLength(sized, binary.LittleEndian, uint64(len(s)))
	}
	crc := crc32c.Sum(sized)
	at := len(lengths)
	lengths = binary.LittleEndian.AppendUint32(lengths, crc32c.Mask(crc))
	crc = crc32c.Update(crc, lengths[at:])
	size := int64(len(lengths))
	if _, err := w.Write(lengths); err != nil {
		return 0, 0, err
	}
	var buf []byte // the checksum is that of bytes, and a string may be long
	for _, s := range vals {
		size += int64(len(s))
		for s != "" {
			n := min(len(s), chunk)
			buf = append(buf[:0], s[:n]...)
			if _, err := w.Write(buf); err != nil {
				return 0, 0, err
			}
			crc = crc32c.Update(crc, buf)
			s = s[n:]
		}
	}
	return size, crc, nil
}

func writeVariants(w io.Writer, t *tensor.Tensor) (int64, uint32, error) {
	p, err := pbconv.TensorToProto(t)
	if err != nil {
		return 0, 0, err
	}
	size, crc := int64(0), uint32(0)
	for _, v := range p.GetVariantVal() {
		elem, err := pbconv.Marshal(v)
		if err != nil {
			return 0, 0, err
		}
		crc = crc32c.Update(crc32c.Update(crc, binary.LittleEndian.AppendUint64(nil, uint64(len(elem)))), elem)
		sum := binary.LittleEndian.AppendUint32(nil, crc32c.Mask(crc))
		crc = crc32c.Update(crc, sum)
		for _, part := range [][]byte{binary.AppendUvarint(nil, uint64(len(elem))), elem, sum} {
			if _, err := w.Write(part); err != nil {
				return 0, 0, err
			}
			size += int64(len(part))
		}
	}
	return size, crc, nil
}
