package local_test

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/sys/tensormem"
	_ "github.com/weft-ml/weft/local"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// An advised is an operation in which TensorFlow had a flaw that its security advisories of 2021 to
// 2023 describe: sizes that overflow, indices out of range, empty inputs, wrong ranks.
type advised struct {
	op     string
	inputs []tensor.DType
	attrs  opdef.Attrs
}

var advisories = []advised{
	{"UnravelIndex", []tensor.DType{tensor.Int32, tensor.Int32}, nil},
	{"Bincount", []tensor.DType{tensor.Int32, tensor.Int32, tensor.Float32}, nil},
	{"DenseBincount", []tensor.DType{tensor.Int32, tensor.Int32, tensor.Float32}, nil},
	{"ReverseSequence", []tensor.DType{tensor.Float32, tensor.Int64}, opdef.Attrs{"seq_dim": int64(1)}},
	{"SparseFillEmptyRows", []tensor.DType{tensor.Int64, tensor.Float32, tensor.Int64, tensor.Float32}, nil},
	{"SparseReshape", []tensor.DType{tensor.Int64, tensor.Int64, tensor.Int64}, nil},
	{"SparseToDense", []tensor.DType{tensor.Int64, tensor.Int64, tensor.Float32, tensor.Float32}, nil},
	{"SpaceToBatchND", []tensor.DType{tensor.Float32, tensor.Int32, tensor.Int32}, nil},
	{"BatchToSpaceND", []tensor.DType{tensor.Float32, tensor.Int32, tensor.Int32}, nil},
	{"NthElement", []tensor.DType{tensor.Float32, tensor.Int32}, nil},
	{"DrawBoundingBoxes", []tensor.DType{tensor.Float32, tensor.Float32}, nil},
	{"MirrorPad", []tensor.DType{tensor.Float32, tensor.Int32}, opdef.Attrs{"mode": "REFLECT"}},
	{"MirrorPadGrad", []tensor.DType{tensor.Float32, tensor.Int32}, opdef.Attrs{"mode": "REFLECT"}},
	{"LinSpace", []tensor.DType{tensor.Float32, tensor.Float32, tensor.Int32}, nil},
	{"Range", []tensor.DType{tensor.Int64, tensor.Int64, tensor.Int64}, nil},
	{"Tile", []tensor.DType{tensor.Float32, tensor.Int32}, nil},
	{"Fill", []tensor.DType{tensor.Int32, tensor.Float32}, nil},
	{"BroadcastTo", []tensor.DType{tensor.Float32, tensor.Int32}, nil},
	{"SegmentSum", []tensor.DType{tensor.Float32, tensor.Int32}, nil},
	{"SparseSegmentMean", []tensor.DType{tensor.Float32, tensor.Int32, tensor.Int32}, nil},
	{"UnsortedSegmentSum", []tensor.DType{tensor.Float32, tensor.Int32, tensor.Int32}, nil},
	{"ScatterNd", []tensor.DType{tensor.Int32, tensor.Float32, tensor.Int32}, nil},
	{"MatrixDiagV3", []tensor.DType{tensor.Float32, tensor.Int32, tensor.Int32, tensor.Int32, tensor.Float32}, nil},
	{"MatrixDiagPartV3", []tensor.DType{tensor.Float32, tensor.Int32, tensor.Float32}, nil},
	{"SobolSample", []tensor.DType{tensor.Int32, tensor.Int32, tensor.Int32}, nil},
	{"Roll", []tensor.DType{tensor.Float32, tensor.Int32, tensor.Int32}, nil},
	{"CropAndResize", []tensor.DType{tensor.Float32, tensor.Float32, tensor.Int32, tensor.Int32}, nil},
	{"ListDiff", []tensor.DType{tensor.Float32, tensor.Float32}, nil},
}

// FuzzAdvisories runs an operation with tensors of any small shape and any values. It must return a
// value or an error; a panic that the executor has caught is a failure.
func FuzzAdvisories(f *testing.F) {
	tensormem.SetLimit(1 << 20) // otherwise large results take most of the time
	f.Cleanup(func() { tensormem.SetLimit(1 << 38) })
	le := binary.LittleEndian
	ints := func(n ...int32) (b []byte) {
		for _, v := range n {
			b = le.AppendUint32(b, uint32(v))
		}
		return b
	}
	for i := range advisories {
		f.Add(byte(i), []byte{0, 0, 0, 0, 0}, ints(0))
		f.Add(byte(i), []byte{1, 1, 1, 1, 1}, ints(-1, math.MaxInt32, math.MinInt32))
		f.Add(byte(i), []byte{0x80, 0x80, 0x80, 0x80, 0x80}, ints(1))
		f.Add(byte(i), []byte{0x12, 0x21, 0x12, 0x33, 0x44}, ints(0, 1, 2, 1<<20, -5))
	}
	f.Fuzz(func(t *testing.T, which byte, shapes, values []byte) {
		a := advisories[int(which)%len(advisories)]
		s := op.NewScope()
		var inputs []op.Arg
		for i, dtype := range a.inputs {
			v, err := small(dtype, shapes, values, i)
			if err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, op.One(op.Const(s, v)))
		}
		n := s.Add(a.op, inputs, a.attrs)
		g, err := s.Finalize()
		if err != nil {
			return // refused while the graph is built
		}
		sess, err := weft.NewSession("local", g)
		if err != nil {
			return
		}
		defer sess.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := sess.Exec(ctx, nil, n); err != nil && strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", a.op, err)
		}
	})
}

// small returns the i-th input: a tensor of at most three small dimensions.
func small(dtype tensor.DType, shapes, values []byte, i int) (tensor.Tensor, error) {
	var shape tensor.Shape
	if i < len(shapes) {
		switch b := shapes[i]; {
		case b >= 0x80:
			shape = tensor.Shape{0}
		case b >= 0x40:
			shape = tensor.Shape{int64(b & 3), int64(b >> 2 & 3), int64(b >> 4 & 3)}
		case b >= 0x10:
			shape = tensor.Shape{int64(b & 0xf % 5), int64(b >> 4)}
		case b > 0:
			shape = tensor.Shape{int64(b)}
		}
	}
	n := int(shape.NumElements())
	at := func(k int) int32 {
		if len(values) < 4 {
			return 0
		}
		k = (k + i) % (len(values) / 4)
		return int32(binary.LittleEndian.Uint32(values[4*k:]))
	}
	switch dtype {
	case tensor.Float32:
		return tensor.FromSlice(shape, fill(n, func(k int) float32 { return math.Float32frombits(uint32(at(k))) }))
	case tensor.Int64:
		return tensor.FromSlice(shape, fill(n, func(k int) int64 { return int64(at(k)) }))
	}
	return tensor.FromSlice(shape, fill(n, at))
}

func fill[T any](n int, at func(int) T) []T {
	out := make([]T, n)
	for k := range out {
		out[k] = at(k)
	}
	return out
}
