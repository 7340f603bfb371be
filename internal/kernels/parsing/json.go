package parsing

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "DecodeJSONExample", Doc: "Converts Example messages from JSON to binary form.",
		In:    []string{"json_examples: string"},
		Out:   []string{"binary_examples: string"},
		Shape: opdef.SameShape,
	}, func(ctx *kernel.Context) error {
		out, err := ctx.AllocateLike(0, ctx.Input(0))
		if err != nil {
			return err
		}
		dst := tensor.Values[string](out)
		at := progress(ctx.Context())
		for i, text := range tensor.Values[string](ctx.Input(0)) {
			if err := at.Pass(len(text)); err != nil {
				return err
			}
			var example pb.Example
			// The text is copied, and so is the encoding, which is at most as long.
			const copies = 3
			membudget.MustTake(protomem.TextMemory(text) + copies*int64(len(text)))
			if err := protojson.Unmarshal([]byte(text), &example); err != nil {
				return status.InvalidArgumentf("Error while parsing JSON: %w", err)
			}
			binary, err := proto.MarshalOptions{Deterministic: true}.Marshal(&example)
			if err != nil {
				return status.InvalidArgumentf("Error while parsing JSON: %w", err)
			}
			dst[i] = string(binary)
		}
		return nil
	})
}
