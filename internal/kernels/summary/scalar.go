package summary

import (
	"math"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/scalars"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerReal(opdef.Def{
		Name: "ScalarSummary", Doc: "Creates a summary of numbers, each under the tag at the same position.",
		In: []string{"tags: string", "values: T"}, Out: []string{"summary: string"}, Attrs: []string{"T: realnumbertype"},
		Shape: opdef.ScalarShape,
	}, scalarSummary)
	registerReal(opdef.Def{
		Name: "HistogramSummary", Doc: "Creates a histogram summary.",
		In: []string{"tag: string", "values: T"}, Out: []string{"summary: string"}, Attrs: []string{"T: realnumbertype = float"},
		Shape: opdef.ScalarShape,
	}, histogram)
}

func scalarSummary(ctx *kernel.Context) error {
	tags, values := ctx.Input(0), ctx.Input(1)
	names := tensor.Values[string](tags)
	if !tags.Shape().Equal(values.Shape()) {
		single := ""
		if len(names) == 1 {
			single = " (tag '" + names[0] + "')"
		}
		return status.InvalidArgumentf("tags and values are not the same shape: %v != %v%s", tags.Shape(), values.Shape(), single)
	}
	vals, err := floats(values)
	if err != nil {
		return err
	}
	out := membudget.Make[summary.Value](len(vals))
	for i, v := range vals {
		out[i] = summary.Value{Tag: names[i], Data: float32(v)}
		ctx.Device.Scalars.Add(names[i], scalars.NoStep, v)
	}
	return result(ctx, out...)
}

func histogram(ctx *kernel.Context) error {
	tag, err := scalarTag(ctx, "tags must be scalar")
	if err != nil {
		return err
	}
	vals, err := floats(ctx.Input(1))
	if err != nil {
		return err
	}
	for _, v := range vals {
		switch {
		case math.IsNaN(v):
			return status.InvalidArgumentf("Nan in summary histogram for: %s", ctx.Node)
		case math.IsInf(v, 0):
			return status.InvalidArgumentf("Infinity in Histogram for: %s", ctx.Node)
		}
	}
	return result(ctx, summary.Value{Tag: tag, Data: summary.NewHistogram(vals)})
}
