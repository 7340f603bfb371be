package summary

import (
	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "TensorSummary", Doc: "Creates a summary of a tensor under the name of the node.",
		In:  []string{"tensor: T"},
		Out: []string{"summary: string"},
		Attrs: []string{
			"T: type",
			"description: string = ''",
			"labels: list(string) = []",
			"display_name: string = ''",
		},
		Shape: opdef.ScalarShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		node := c.Node
		return kernel.Func(func(ctx *kernel.Context) error {
			return result(ctx, summary.Value{Node: node, Data: *ctx.Input(0)})
		}), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "TensorSummaryV2", Doc: "Creates a summary of a tensor, with metadata for a TensorBoard plugin.",
		In:    []string{"tag: string", "tensor: T", "serialized_summary_metadata: string"},
		Out:   []string{"summary: string"},
		Attrs: []string{"T: type"},
		Shape: opdef.ScalarShape,
	}, tensorV2)
	kernel.RegisterFunc(opdef.Def{
		Name: "MergeSummary", Doc: "Merges summaries, whose tags must be distinct.",
		In: []string{"inputs: N * string"}, Out: []string{"summary: string"}, Attrs: []string{"N: int >= 1"},
		Shape: opdef.ScalarShape,
	}, merge)
}

func tensorV2(ctx *kernel.Context) error {
	tag, err := scalarTag(ctx, "tag must be scalar")
	if err != nil {
		return err
	}
	if ctx.Input(2).Rank() != 0 {
		return status.InvalidArgumentf("serialized_summary_metadata must be scalar")
	}
	v := summary.Value{Tag: tag, Data: *ctx.Input(1)}
	if err := v.SetMetadata([]byte(tensor.Value[string](ctx.Input(2)))); err != nil {
		return err
	}
	return result(ctx, v)
}

func merge(ctx *kernel.Context) error {
	var all []summary.Value
	var meter membudget.Meter
	tags := map[string]bool{}
	for i := range ctx.NumInputs() {
		for _, s := range tensor.Values[string](ctx.Input(i)) {
			values, err := read(s)
			if err != nil {
				return status.InvalidArgumentf("Could not parse one of the summary inputs")
			}
			for _, v := range values {
				if v.Tag != "" && tags[v.Tag] {
					return status.InvalidArgumentf("Duplicate tag %s found in summary inputs ", v.Tag)
				}
				meter.MustTakeEntry(0)
				tags[v.Tag] = true
			}
			all = membudget.AppendAll(all, values...)
		}
	}
	return result(ctx, all...)
}

// read decodes a serialized Summary. A value of a summary may take two bytes of the string, and
// some hundred bytes of memory.
func read(s string) ([]summary.Value, error) {
	protomem.MustTake((*pb.Summary)(nil).ProtoReflect().Descriptor(), []byte(s))
	return summary.Unmarshal([]byte(s))
}
