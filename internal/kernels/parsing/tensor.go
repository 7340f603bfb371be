package parsing

import (
	"encoding/base64"

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
	kernel.RegisterNew(opdef.Def{
		Name: "ParseTensor", Doc: "Parses a serialized TensorProto message to a tensor.",
		In:    []string{"serialized: string"},
		Out:   []string{"output: out_type"},
		Attrs: []string{"out_type: type"},
		Shape: opdef.UnknownShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		want := c.Attrs.Type("out_type")
		return kernel.Func(func(ctx *kernel.Context) error { return parseTensor(ctx, want) }), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "SerializeTensor", Doc: "Serializes a tensor to a TensorProto message.",
		In:    []string{"tensor: T"},
		Out:   []string{"serialized: string"},
		Attrs: []string{"T: type"},
		Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		encode := pbconv.TensorToWire
		if ctx.Input(0).DType() == tensor.String {
			encode = pbconv.TensorToProto // strings are encoded individually
		}
		p, err := encode(ctx.Input(0))
		if err != nil {
			return err
		}
		text, err := pbconv.MarshalText(p)
		if err != nil {
			return err
		}
		ctx.SetOutput(0, tensor.Scalar(text))
		return nil
	})
}

// mostQuoted is the number of bytes of a malformed message that an error shows.
const mostQuoted = 48 << 10

func parseTensor(ctx *kernel.Context, want tensor.DType) error {
	in := ctx.Input(0)
	if in.Rank() != 0 {
		return status.InvalidArgumentf("Expected `serialized` to be a scalar, got shape: %v", in.Shape())
	}
	value := tensor.Value[string](in)
	membudget.MustTake(int64(len(value)))
	text := []byte(value)
	var p pb.TensorProto
	if protomem.Unmarshal(text, &p) != nil {
		return status.InvalidArgumentf("Could not parse `serialized` as TensorProto, base64: %s", base64.StdEncoding.EncodeToString(text[:min(len(text), mostQuoted)]))
	}
	t, err := pbconv.TensorFromProto(&p)
	if err != nil {
		return err
	}
	if got := t.DType(); got != want {
		t.Release()
		return status.InvalidArgumentf("Type mismatch between parsed tensor (%v) and dtype (%v)", got, want)
	}
	ctx.SetOutput(0, t)
	return nil
}
