package logging

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Print", Doc: "Returns its input, and prints the values of data to the task's standard error.",
		In: []string{"input: T", "data: U"}, Out: []string{"output: T"},
		Attrs: []string{
			"T: type", "U: list(type) >= 0", "message: string = ''", "first_n: int = -1", "summarize: int = 3",
		},
		Stateful: true, Class: opdef.Prints, Shape: opdef.SameShape,
	}, newPrint)
	kernel.RegisterNew(opdef.Def{
		Name: "PrintV2", Doc: "Prints a string to an output stream of the task, or appends it to a file given " +
			"as \"file://PATH\".",
		In:       []string{"input: string"},
		Attrs:    []string{"output_stream: string = 'stderr'", `end: string = '\n'`},
		Stateful: true, Class: opdef.Prints | opdef.FilesWrite,
		Shape: func(c *opdef.ShapeContext) error {
			if rank := c.In[0].Rank(); rank > 0 {
				return status.InvalidArgumentf("input must be a scalar, but has rank: %d", rank)
			}
			return nil
		},
	}, newPrintV2)
}

func newPrint(c *kernel.Construction) (kernel.Kernel, error) {
	message, first, most := c.Attrs.String("message"), int64(c.Attrs.Int("first_n")), c.Attrs.Int("summarize")
	var calls atomic.Int64
	out := c.Output(true)
	return kernel.Func(func(ctx *kernel.Context) error {
		if first < 0 || calls.Add(1) <= first {
			text := values(ctx, most, "")
			const copies = 2 // with the message, and in the buffer of Fprintln
			membudget.MustTake(copies * int64(len(message)+len(text)))
			if _, err := fmt.Fprintln(out, message+text); err != nil {
				return status.Unavailablef("printing to stderr: %w", err)
			}
		}
		return ctx.PassInput(0, 0)
	}), nil
}

// streamNames lists the streams of PrintV2. The log streams are standard error.
var streamNames = []string{"stdout", "stderr", "log(info)", "log(warning)", "log(error)"}

func newPrintV2(c *kernel.Construction) (kernel.Kernel, error) {
	stream, end := c.Attrs.String("output_stream"), c.Attrs.String("end")
	path, isFile := strings.CutPrefix(stream, "file://")
	if !isFile && !slices.Contains(streamNames, stream) {
		return nil, status.InvalidArgumentf("Unknown output stream: %s, Valid streams are: %s", stream, strings.Join(streamNames, " "))
	}
	out, files := c.Output(stream != "stdout"), c.Files()
	return kernel.Func(func(ctx *kernel.Context) error {
		if s := ctx.Input(0).Shape(); len(s) != 0 {
			return status.InvalidArgumentf("Input is expected to be scalar, but got %v", s)
		}
		text := tensor.Value[string](ctx.Input(0))
		membudget.MustTake(int64(len(text) + len(end)))
		text += end
		if isFile {
			return appendFile(files.In(ctx.Context()), path, text)
		}
		if _, err := io.WriteString(out, text); err != nil {
			return status.Unavailablef("printing to %s: %w", stream, err)
		}
		return nil
	}), nil
}

// appendMu serializes appends of several kernels to one file.
var appendMu sync.Mutex

func appendFile(files fileio.Files, path, text string) error {
	appendMu.Lock()
	defer appendMu.Unlock()
	f, err := files.Append(path)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(f, text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
