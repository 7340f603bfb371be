package hostile

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/tensor"
)

var integers = []int64{
	0, 1, -1, 2, 3, -2, 7, 8, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, -128, 255, 256, 1000, 4096, 32767, 32768, 65535, 65536, 100_000,
	1 << 20, 10_000_000, 1 << 27, 1 << 28, 1 << 30, math.MaxInt32, math.MinInt32, math.MaxInt32 - 1, 1 << 31, 1<<32 - 1, 1 << 32,
	1 << 40, 1 << 48, 1 << 60, 1 << 61, 1 << 62, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1, math.MinInt64 + 1, -1000, -(1 << 40),
}

var floats = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.5, 2, 1e-45, 1e-30, 1e30, -1e30, 3.4e38, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), 1e9, 2147483648,
	9.3e18, -9.3e18, 1e-300, 255, 65536, 1e6,
}

var texts = []string{
	"", "a", "ab", "0", "-1", "1e400", "nan", "\x00", "\xff\xfe", "%s%n%d", strings.Repeat("(", 500), strings.Repeat("[", 3000),
	strings.Repeat("(a*)*", 30) + "b", "(x{1000}){1000}", "((((((((a{10}){10}){10}){10}){10}){10}){10}){10})", "[[:alpha:]]+", "(?i)",
	"../../etc/passwd", "/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/self/environ", "/tmp", "file:///etc/passwd", "*", "/*/*/*/*",
	strings.Repeat("x", 1<<12), strings.Repeat("é", 1<<10), "\U0010FFFF\xed\xa0\x80", "GZIP", "ZLIB", "SNAPPY", "NHWC", "NCHW", "VALID", "SAME",
	"EXPLICIT", "utf-8", "UTF-16-BE", "a,b->c", "...ij,...jk->...ik", strings.Repeat("a", 200) + "->" + strings.Repeat("a", 200), "ij->ijij",
	"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\x00\x00\x00",
	"GIF89a\xff\xff\xff\xff\xf7\x00\x00", "\xff\xd8\xff\xe0\x00\x10JFIF\x00\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22",
	"BM\xff\xff\xff\x7f\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00\xff\xff\xff\x7f\xff\xff\xff\x7f\x01\x00\x18\x00",
	"RIFF\xff\xff\xff\x7fWAVEfmt \x10\x00\x00\x00\x01\x00\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\x10\x00data\xff\xff\xff\x7f",
	"RIFF\xff\xff\xff\x7fWEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\xff\xff\xff\xff\xff\xff",
	"tensorflow.GraphDef", "float32", "/job:ps/replica:0/task:0/device:CPU:0", "/device:GPU:0", "/job:nowhere/task:99", "@", "^a", "a:0", "_Arg",
}

// integer returns a number, small or extreme.
func (r *random) integer() int64 {
	switch r.IntN(4) {
	case 0:
		return int64(r.IntN(12)) - 2
	case 1:
		return int64(r.Uint64()) >> r.IntN(64)
	default:
		return pick(r, integers)
	}
}

func (r *random) float() float64 {
	if r.oneIn(3) {
		return math.Float64frombits(r.Uint64())
	}
	return pick(r, floats)
}

func (r *random) text() string {
	if r.oneIn(4) {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return string(b)
	}
	return pick(r, texts)
}

// dims returns a shape whose elements fit a request if small is true.
func (r *random) dims(small bool) []int64 {
	rank := r.IntN(6)
	if r.oneIn(20) {
		rank = pick(r, []int{8, 9, 32, 254, 255, 300})
	}
	out := make([]int64, rank)
	elements := int64(1)
	for i := range out {
		out[i] = pick(r, []int64{0, 1, 1, 1, 2, 3, 5, 17})
		if !small && r.oneIn(3) {
			out[i] = r.integer()
		}
		if elements *= out[i]; small && elements > 1<<16 {
			out[i], elements = 1, elements/max(1, out[i])
		}
	}
	return out
}

func shapeProto(dims []int64) *pb.TensorShapeProto {
	s := &pb.TensorShapeProto{}
	for _, d := range dims {
		s.Dim = append(s.Dim, &pb.TensorShapeProto_Dim{Size: d})
	}
	return s
}

func (r *random) shape() *pb.TensorShapeProto {
	if r.oneIn(6) {
		return &pb.TensorShapeProto{UnknownRank: true}
	}
	return shapeProto(r.dims(r.oneIn(2)))
}

var dtypes = []tensor.DType{
	tensor.Float32, tensor.Float64, tensor.Int32, tensor.Uint8, tensor.Int16, tensor.Int8, tensor.String, tensor.Complex64, tensor.Int64,
	tensor.Bool, tensor.QInt8, tensor.QUint8, tensor.QInt32, tensor.BFloat16, tensor.Uint16, tensor.Complex128, tensor.Float16,
	tensor.Uint32, tensor.Uint64, tensor.Resource, tensor.Variant, tensor.Float8E5M2, tensor.Int4,
}

func (r *random) dtype() pb.DataType {
	if r.oneIn(15) {
		return pb.DataType(r.IntN(260))
	}
	if r.oneIn(3) {
		return pb.DataType(dtypes[r.IntN(len(dtypes))])
	}
	return pb.DataType(pick(r, dtypes[:9]))
}

// tensor returns a tensor of a type with extreme values.
func (r *random) tensor(dtype pb.DataType) *pb.TensorProto {
	t := &pb.TensorProto{Dtype: dtype, TensorShape: shapeProto(r.dims(true))}
	n := int64(1)
	for _, d := range t.TensorShape.Dim {
		n *= d.Size
	}
	if r.oneIn(80) {
		n = r.Int64N(5) // another number than the shape has
	}
	if dtype == pb.DataType_DT_STRING {
		for range n {
			t.StringVal = append(t.StringVal, []byte(r.text()))
		}
		return t
	}
	size := int64(tensor.DType(dtype).Size())
	if dtype > 255 || size <= 0 {
		size = 1
	}
	t.TensorContent = make([]byte, n*size)
	r.elements(dtype, t.TensorContent, int(size))
	return t
}

// elements fills the encoded elements of a type.
func (r *random) elements(dtype pb.DataType, content []byte, size int) {
	var b [16]byte
	for at := 0; at+size <= len(content); at += size {
		switch dtype {
		case pb.DataType_DT_FLOAT:
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(r.float())))
		case pb.DataType_DT_DOUBLE:
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(r.float()))
		case pb.DataType_DT_BOOL:
			b[0] = byte(r.IntN(2))
		default:
			binary.LittleEndian.PutUint64(b[:], uint64(r.integer()))
		}
		copy(content[at:at+size], b[:])
	}
}

// changed returns a constant with other values, another shape or another type.
func (r *random) changed(t *pb.TensorProto) *pb.TensorProto {
	out := &pb.TensorProto{Dtype: t.Dtype, TensorShape: t.TensorShape, StringVal: t.StringVal}
	value, err := pbconv.TensorFromProto(t)
	if err != nil || r.oneIn(30) {
		return r.tensor(r.dtype())
	}
	shape := value.Shape()
	switch kind := r.IntN(10); {
	case kind < 5: // one value
		return r.withValue(out, &value)
	case kind < 6: // all values
		out = r.tensor(t.Dtype)
		out.TensorShape = t.TensorShape
		return out
	case kind < 7:
		return r.tensor(t.Dtype)
	default: // the same values in another shape
		dims := make([]int64, 0, len(shape)+1)
		dims = append(dims, shape...)
		switch i := r.IntN(len(dims) + 1); {
		case i == len(dims):
			dims = append(dims, pick(r, []int64{0, 1, 2}))
		case r.oneIn(3):
			dims = append(dims[:i], dims[i+1:]...)
		default:
			dims[i] = pick(r, []int64{0, 1, dims[i] + 1, dims[i] * 2, max(0, dims[i]-1)})
		}
		out.TensorShape = shapeProto(dims)
		content, err := pbconv.EncodeElements(&value)
		if err != nil || t.Dtype == pb.DataType_DT_STRING {
			return r.tensor(t.Dtype)
		}
		n := tensor.DType(t.Dtype).Size()
		for _, d := range dims {
			n *= int(d)
		}
		for len(content) < n && len(content) > 0 {
			content = append(content, content...)
		}
		if n <= len(content) {
			out.TensorContent = content[:n]
			return out
		}
		return r.tensor(t.Dtype)
	}
}

// withValue returns the constant with another value at one place.
func (r *random) withValue(out *pb.TensorProto, value *tensor.Tensor) *pb.TensorProto {
	n := value.NumElements()
	if n == 0 {
		return r.tensor(out.Dtype)
	}
	if out.Dtype == pb.DataType_DT_STRING {
		out.StringVal = make([][]byte, n)
		for i, s := range tensor.Values[string](value) {
			out.StringVal[i] = []byte(s)
		}
		at := r.IntN(n)
		if old := out.StringVal[at]; len(old) > 0 && r.oneIn(2) {
			out.StringVal[at] = r.damaged(old)
		} else {
			out.StringVal[at] = []byte(r.text())
		}
		return out
	}
	content, err := pbconv.EncodeElements(value)
	if err != nil || len(content) < n {
		return r.tensor(out.Dtype)
	}
	size := len(content) / n
	for range 1 + r.IntN(2) {
		at := r.IntN(n) * size
		r.elements(out.Dtype, content[at:at+size], size)
	}
	out.TensorContent, out.StringVal = content, nil
	return out
}

// damaged returns a copy of bytes with a few changes.
func (r *random) damaged(b []byte) []byte {
	out := append([]byte(nil), b...)
	for range 1 + r.IntN(4) {
		if len(out) == 0 {
			return []byte(r.text())
		}
		at := r.IntN(len(out))
		switch r.IntN(5) {
		case 0:
			out[at] ^= 1 << r.IntN(8)
		case 1:
			out[at] = pick(r, []byte{0, 1, 0x7f, 0x80, 0xff})
		case 2:
			out = append(out[:at], out[min(len(out), at+1+r.IntN(8)):]...)
		case 3:
			end := min(len(out), at+1+r.IntN(32))
			out = append(out[:end:end], out[at:]...)
		case 4:
			out = out[:at]
		}
	}
	return out
}
