package summary

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "SummaryWriter", Doc: "Returns a handle to a summary writer, which CreateSummaryFileWriter opens.",
		Out:      []string{"writer: resource"},
		Attrs:    []string{"shared_name: string = ''", "container: string = ''"},
		Stateful: true, Shape: opdef.ScalarShape,
	}, newHandle)
	kernel.RegisterNew(opdef.Def{
		Name: "CreateSummaryFileWriter", Doc: "Creates an event file in a directory, unless the writer already has one.",
		In: []string{
			"writer: resource", "logdir: string", "max_queue: int32", "flush_millis: int32", "filename_suffix: string",
		},
		Stateful: true, Class: opdef.FilesWrite,
	}, kernel.WithFiles(create))
	kernel.RegisterFunc(opdef.Def{
		Name: "FlushSummaryWriter", Doc: "Flushes all summaries of a writer to disk.",
		In:       []string{"writer: resource"},
		Stateful: true,
	}, func(ctx *kernel.Context) error {
		w, err := resource.Find[*writer](ctx, 0)
		if err != nil {
			return err
		}
		return w.Flush()
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "CloseSummaryWriter", Doc: "Flushes and closes the event file of a writer.",
		In:       []string{"writer: resource"},
		Stateful: true,
	}, func(ctx *kernel.Context) error {
		h, err := resource.Handle(ctx, 0)
		if err != nil {
			return err
		}
		return ctx.Device.Resources.DeleteResource(h.Container, (*writer)(nil).TypeName(), h.Name)
	})
}

// writer is the resource for an event file.
type writer struct{ *summary.Writer }

// TypeName returns TensorFlow's name of the resource type in handles and errors.
func (*writer) TypeName() string { return "N10tensorflow22SummaryWriterInterfaceE" }

// Close closes the file when the writer is no longer reachable. Errors of a final write are
// ignored.
func (w *writer) Close() { _ = w.Writer.Close() }

func newHandle(c *kernel.Construction) (kernel.Kernel, error) {
	place, err := resource.PlaceOf(c, false)
	if err != nil {
		return nil, err
	}
	handle := tensor.Scalar(place.Handle(c.Device, (*writer)(nil).TypeName()))
	return kernel.Func(func(ctx *kernel.Context) error {
		ctx.SetOutput(0, handle.Retain())
		return nil
	}), nil
}

func create(ctx *kernel.Context, files fileio.Files) error {
	h, err := resource.Handle(ctx, 0)
	if err != nil {
		return err
	}
	for i, name := range []string{1: "logdir", 2: "max_queue", 3: "flush_millis", 4: "filename_suffix"} {
		if ctx.Input(i).Rank() != 0 {
			return status.InvalidArgumentf("%s must be a scalar", name)
		}
	}
	dir, suffix := tensor.Value[string](ctx.Input(1)), tensor.Value[string](ctx.Input(4))
	if suffix == "" || suffix[0] != '.' {
		suffix = "." + suffix
	}
	options := summary.Options{
		MaxQueue: int(tensor.Value[int32](ctx.Input(2))), FlushEvery: time.Duration(tensor.Value[int32](ctx.Input(3))) * time.Millisecond,
		Suffix: suffix,
	}
	if options.MaxQueue == 0 {
		options.MaxQueue = -1
	}
	_, err = kernel.LookupOrCreateResource(ctx.Device.Resources, h.Container, h.Name, func() (*writer, error) {
		w, err := summary.NewWriterIn(files.In(context.Background()), dir, options)
		return &writer{w}, err
	})
	return err
}
