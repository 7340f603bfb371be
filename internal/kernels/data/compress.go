package data

import (
	"math"

	"github.com/golang/snappy"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	tensor.RegisterVariant(compressedName, decodeCompressed)
	kernel.RegisterFunc(opdef.Def{
		Name: "CompressElement", Doc: "Compresses the components of a dataset element with Snappy.",
		In: []string{"components: input_types"}, Out: []string{"compressed: variant"}, Attrs: []string{"input_types: list(type) >= 1"},
		Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		e := element(membudget.Make[tensor.Tensor](ctx.NumInputs()))
		for i := range e {
			e[i] = *ctx.Input(i)
		}
		c, err := compress(e)
		if err == nil {
			ctx.SetOutput(0, tensor.Scalar(tensor.VariantValue{Value: c}))
		}
		return err
	})
	kernel.RegisterNew(opdef.Def{
		Name: "UncompressElement", Doc: "Uncompresses an element that CompressElement compressed.",
		In: []string{"compressed: variant"}, Out: []string{"components: output_types"}, Attrs: withSpec(), Shape: elementShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		return kernel.Func(func(ctx *kernel.Context) error { return setUncompressedOutputs(ctx, c.Outputs) }), nil
	})
}

// compressed is the value of a variant that holds an element in TensorFlow's format for sending
// elements to other processes. It is immutable.
type compressed struct{ *pb.CompressedElement }

const (
	compressedName    = "tensorflow.data.CompressedElement"
	compressedVersion = 0
)

// EncodeVariant returns the wire form of a compressed element: the message is the metadata.
func (c compressed) EncodeVariant() (tensor.EncodedVariant, error) {
	b, err := pbconv.Marshal(c.CompressedElement)
	return tensor.EncodedVariant{TypeName: compressedName, Metadata: b}, err
}

func decodeCompressed(v tensor.EncodedVariant) (any, error) {
	c := compressed{&pb.CompressedElement{}}
	if !protomem.Take(c.ProtoReflect().Descriptor(), v.Metadata) {
		return nil, status.ResourceExhaustedf("OOM when decoding a compressed element of %d bytes", len(v.Metadata))
	}
	if proto.Unmarshal(v.Metadata, c.CompressedElement) != nil {
		return nil, status.InvalidArgumentf("cannot decode a compressed element")
	}
	return c, nil
}

// compress concatenates the bytes of all components and compresses them. Strings contribute their
// own bytes; other types without a byte representation are encoded as TensorProto.
func compress(e element) (compressed, error) {
	c := compressed{&pb.CompressedElement{Version: compressedVersion}}
	var all []byte
	for i := range e {
		t := &e[i]
		m := &pb.CompressedComponentMetadata{Dtype: pb.DataType(t.DType()), TensorShape: pbconv.ShapeToProto(t.Shape())}
		add := func(b []byte) {
			all = membudget.AppendAll(all, b...)
			m.UncompressedBytes = membudget.Append(m.UncompressedBytes, uint64(len(b)))
		}
		switch {
		case t.DType() == tensor.String:
			for _, s := range tensor.Values[string](t) {
				add([]byte(s))
			}
		case !hasRawBytes(t.DType()):
			p, err := pbconv.TensorToProto(t)
			if err != nil {
				return c, err
			}
			b, err := pbconv.Marshal(p)
			if err != nil {
				return c, err
			}
			add(b)
		case t.NumElements() > 0:
			add(t.Bytes())
		}
		c.ComponentMetadata = append(c.ComponentMetadata, m)
	}
	if len(all) > math.MaxUint32 {
		return c, status.OutOfRangef("Encountered dataset element of size %d, exceeding the 4GB Snappy limit.", len(all))
	}
	membudget.MustTake(int64(snappy.MaxEncodedLen(len(all))))
	c.Data = snappy.Encode(nil, all)
	return c, nil
}

// uncompress returns the components of an element.
func (c compressed) uncompress() (element, error) {
	if c.GetVersion() != compressedVersion {
		return nil, status.Internalf("Unsupported compressed element version: %d", c.GetVersion())
	}
	size, err := snappy.DecodedLen(c.GetData())
	if err != nil {
		return nil, status.Internalf("Could not get snappy uncompressed length. Compressed data size: %d", len(c.GetData()))
	}
	var want uint64
	for _, m := range c.GetComponentMetadata() {
		for _, n := range m.GetUncompressedBytes() {
			if n > math.MaxUint32 || want+n > math.MaxUint32 {
				return nil, status.Internalf("the components of a compressed element are larger than 4 GB")
			}
			want += n
		}
	}
	if uint64(size) != want { //nolint:gosec // a length is not negative
		return nil, status.Internalf("Uncompressed size mismatch. Snappy expects %d whereas the tensor metadata suggests %d", size, want)
	}
	membudget.MustTake(int64(size))
	all, err := snappy.Decode(nil, c.GetData())
	if err != nil {
		return nil, status.Internalf("Failed to perform snappy decompression.")
	}
	e := element(membudget.MakeCap[tensor.Tensor](len(c.GetComponentMetadata())))
	for _, m := range c.GetComponentMetadata() {
		t, used, err := uncompressedComponent(m, all)
		if err != nil {
			e.release()
			return nil, err
		}
		e, all = append(e, t), all[used:]
	}
	return e, nil
}

// uncompressedComponent decodes a component from the start of all and returns the number of bytes
// it used.
func uncompressedComponent(m *pb.CompressedComponentMetadata, all []byte) (tensor.Tensor, uint64, error) {
	dtype, sizes := tensor.DType(m.GetDtype()), m.GetUncompressedBytes()
	if !dtype.Valid() {
		return tensor.Tensor{}, 0, status.Internalf("a compressed element has a component of unknown type %d", dtype)
	}
	if dtype != tensor.String {
		if len(sizes) > 1 || len(sizes) == 0 && !hasRawBytes(dtype) {
			return tensor.Tensor{}, 0, status.Internalf("a compressed element has %d sizes for a component of type %v", len(sizes), dtype)
		}
		var n uint64
		if len(sizes) == 1 {
			n = sizes[0]
		}
		t, err := storedComponent(dtype, m.GetTensorShape(), all[:n])
		return t, n, err
	}
	shape, err := pbconv.ShapeFromProto(m.GetTensorShape())
	if err != nil {
		return tensor.Tensor{}, 0, err
	}
	values, used := membudget.Make[string](len(sizes)), uint64(0)
	for i, n := range sizes {
		values[i] = string(all[used : used+n])
		used += n
	}
	t, err := tensor.FromSlice(shape, values)
	return t, used, err
}

func setUncompressedOutputs(ctx *kernel.Context, types []tensor.DType) error {
	in := ctx.Input(0)
	if in.Rank() != 0 {
		return status.InvalidArgumentf("UncompressElement requires its input to be a scalar, but encountered an input with %d dimensions.", in.Rank())
	}
	c, ok := tensor.Value[tensor.VariantValue](in).Value.(compressed)
	if !ok {
		return status.InvalidArgumentf("Input does not contain a compressed element. Instead got tensor %v", in)
	}
	e, err := c.uncompress()
	if err != nil {
		return err
	}
	if len(e) != len(types) {
		e.release()
		return status.FailedPreconditionf("Expected %d outputs from uncompress, but got %d", len(types), len(e))
	}
	for i := range e {
		if e[i].DType() != types[i] {
			err := status.FailedPreconditionf("Expected a tensor of type %v but got a tensor of type %v", types[i], e[i].DType())
			e.release()
			return err
		}
	}
	for i := range e {
		ctx.SetOutput(i, e[i])
	}
	return nil
}
