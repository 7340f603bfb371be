package summary

import (
	"math"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerWrite(opdef.Def{
		Name: "WriteSummary", Doc: "Writes a tensor summary with metadata for a TensorBoard plugin.",
		In:    []string{"writer: resource", "step: int64", "tensor: T", "tag: string", "summary_metadata: string"},
		Attrs: []string{"T: type"},
	}, writeTensor)
	registerWrite(opdef.Def{
		Name: "WriteRawProtoSummary", Doc: "Writes Summary messages as one event.",
		In: []string{"writer: resource", "step: int64", "tensor: string"},
	}, writeRaw)
	registerWrite(opdef.Def{
		Name: "ImportEvent", Doc: "Writes an Event message.",
		In: []string{"writer: resource", "event: string"},
	}, importEvent)
	registerWrite(opdef.Def{
		Name: "WriteScalarSummary", Doc: "Writes a scalar summary.",
		In:    []string{"writer: resource", "step: int64", "tag: string", "value: T"},
		Attrs: []string{"T: realnumbertype"},
	}, writeScalar)
	registerWrite(opdef.Def{
		Name: "WriteHistogramSummary", Doc: "Writes a histogram summary.",
		In:    []string{"writer: resource", "step: int64", "tag: string", "values: T"},
		Attrs: []string{"T: {realnumbertype, bool} = float"},
	}, writeHistogram)
	registerWrite(opdef.Def{
		Name: "WriteGraphSummary", Doc: "Writes a serialized GraphDef message.",
		In: []string{"writer: resource", "step: int64", "tensor: string"},
	}, writeGraph)
	kernel.RegisterNew(opdef.Def{
		Name: "WriteImageSummary", Doc: "Writes a summary of the first images of a batch [batch, height, width, channels].",
		In:       []string{"writer: resource", "step: int64", "tag: string", "tensor: T", "bad_color: uint8"},
		Attrs:    []string{"max_images: int >= 1 = 3", "T: {uint8, float64, float, half} = float"},
		Stateful: true,
	}, newWriteImage)
	kernel.RegisterNew(opdef.Def{
		Name: "WriteAudioSummary", Doc: "Writes a summary of the first clips of a batch [batch, frames] or [batch, frames, channels].",
		In:       []string{"writer: resource", "step: int64", "tag: string", "tensor: float", "sample_rate: float"},
		Attrs:    []string{"max_outputs: int >= 1 = 3"},
		Stateful: true,
	}, newWriteAudio)
}

// writeFunc writes the inputs after the writer.
type writeFunc func(ctx *kernel.Context, w *writer) error

// registerWrite registers an operation whose first input is a writer.
func registerWrite(def opdef.Def, write writeFunc) {
	def.Stateful = true
	kernel.RegisterFunc(def, write.compute)
}

func (write writeFunc) compute(ctx *kernel.Context) error {
	w, err := resource.Find[*writer](ctx, 0)
	if err != nil {
		return err
	}
	return write(ctx, w)
}

// first returns the first element of input i, which must not be empty.
func first[T tensor.Elem](ctx *kernel.Context, i int, name string) (T, error) {
	if t := ctx.Input(i); t.NumElements() > 0 {
		return tensor.Values[T](t)[0], nil
	}
	var none T
	return none, status.InvalidArgumentf("%s must be scalar, got shape %v", name, ctx.Input(i).Shape())
}

// stepTag returns the step in input 1 and the tag in input i.
func stepTag(ctx *kernel.Context, i int) (step int64, tag string, err error) {
	if step, err = first[int64](ctx, 1, "step"); err == nil {
		tag, err = first[string](ctx, i, "tag")
	}
	return step, tag, err
}

func writeTensor(ctx *kernel.Context, w *writer) error {
	step, tag, err := stepTag(ctx, 3)
	if err != nil {
		return err
	}
	metadata, err := first[string](ctx, 4, "summary_metadata")
	if err != nil {
		return err
	}
	v := summary.Value{Tag: tag, Data: *ctx.Input(2)}
	if err := v.SetMetadata([]byte(metadata)); err != nil {
		return err
	}
	showScalar(ctx, step, tag, metadata)
	return w.Add(step, v)
}

// scalarPlugin is the name of TensorBoard's plugin in the metadata of tf.summary.scalar, with its
// tag and length in the message.
const scalarPlugin = "\x0a\x07scalars"

// showScalar makes the number of tf.summary.scalar visible to those who look at the task.
func showScalar(ctx *kernel.Context, step int64, tag, metadata string) {
	if t := ctx.Input(2); t.DType() == tensor.Float32 && t.NumElements() == 1 && strings.Contains(metadata, scalarPlugin) {
		ctx.Device.Scalars.Add(tag, step, float64(tensor.Values[float32](t)[0]))
	}
}

func writeRaw(ctx *kernel.Context, w *writer) error {
	if s := ctx.Input(1).Shape(); len(s) != 0 {
		return status.InvalidArgumentf("step must be scalar, got shape %v", s)
	}
	all := []summary.Value{}
	for i, s := range tensor.Values[string](ctx.Input(2)) {
		values, err := read(s)
		if err != nil {
			return status.DataLossf("Bad tf.compat.v1.Summary binary proto tensor string at index %d", i)
		}
		all = membudget.AppendAll(all, values...)
	}
	return w.Add(tensor.Value[int64](ctx.Input(1)), all...)
}

func importEvent(ctx *kernel.Context, w *writer) error {
	s, err := first[string](ctx, 1, "event")
	if err != nil {
		return err
	}
	protomem.MustTake((*pb.Event)(nil).ProtoReflect().Descriptor(), []byte(s))
	if err := summary.CheckEvent([]byte(s)); err != nil {
		return status.DataLossf("Bad tf.Event binary proto tensor string")
	}
	return w.AddRaw([]byte(s))
}

func writeScalar(ctx *kernel.Context, w *writer) error {
	step, tag, err := stepTag(ctx, 2)
	if err != nil {
		return err
	}
	vals, err := floats(ctx.Input(3))
	if err != nil {
		return err
	}
	if len(vals) == 0 {
		return status.InvalidArgumentf("value must be scalar, got shape %v", ctx.Input(3).Shape())
	}
	ctx.Device.Scalars.Add(tag, step, vals[0])
	return w.Add(step, summary.Value{Tag: tag, Data: float32(vals[0])})
}

func writeHistogram(ctx *kernel.Context, w *writer) error {
	step, tag, err := stepTag(ctx, 2)
	if err != nil {
		return err
	}
	vals, err := floats(ctx.Input(3))
	if err != nil {
		return err
	}
	for _, v := range vals {
		switch {
		case math.IsNaN(v):
			return status.InvalidArgumentf("Nan in summary histogram for: %s", tag)
		case math.IsInf(v, 0):
			return status.InvalidArgumentf("Infinity in summary histogram for: %s", tag)
		}
	}
	return w.Add(step, summary.Value{Tag: tag, Data: summary.NewHistogram(vals)})
}

func writeGraph(ctx *kernel.Context, w *writer) error {
	step, err := first[int64](ctx, 1, "step")
	if err != nil {
		return err
	}
	graph, err := first[string](ctx, 2, "tensor")
	if err != nil {
		return err
	}
	protomem.MustTake((*pb.GraphDef)(nil).ProtoReflect().Descriptor(), []byte(graph))
	if err := summary.CheckGraph([]byte(graph)); err != nil {
		return status.DataLossf("Bad tf.GraphDef binary proto tensor string")
	}
	return w.AddEvent(summary.Event{Step: step, Graph: []byte(graph)})
}

func newWriteImage(c *kernel.Construction) (kernel.Kernel, error) {
	most := c.Attrs.Int("max_images")
	if most > math.MaxInt32 {
		return nil, status.InvalidArgumentf("max_images must be < 2^31")
	}
	return kernel.Func(writeFunc(func(ctx *kernel.Context, w *writer) error {
		step, tag, err := stepTag(ctx, 2)
		if err != nil {
			return err
		}
		if s := ctx.Input(4).Shape(); len(s) != 1 {
			return status.InvalidArgumentf("bad_color must be a vector, got shape %v", s)
		}
		values, err := imageValues(tag, ctx.Input(3), most, tensor.Values[uint8](ctx.Input(4)))
		if err != nil {
			return err
		}
		return w.Add(step, values...)
	}).compute), nil
}

func newWriteAudio(c *kernel.Construction) (kernel.Kernel, error) {
	most := c.Attrs.Int("max_outputs")
	return kernel.Func(writeFunc(func(ctx *kernel.Context, w *writer) error {
		step, tag, err := stepTag(ctx, 2)
		if err != nil {
			return err
		}
		rate, err := first[float32](ctx, 4, "sample_rate")
		if err != nil {
			return err
		}
		values, err := audioValues(tag, ctx.Input(3), most, rate)
		if err != nil {
			return err
		}
		return w.Add(step, values...)
	}).compute), nil
}
