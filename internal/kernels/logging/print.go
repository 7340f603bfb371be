package logging

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/format/fileio"
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
		Stateful: true, Shape: opdef.SameShape,
	}, newPrint)
	kernel.RegisterNew(opdef.Def{
		Name: "PrintV2", Doc: "Prints a string to an output stream of the task, or appends it to a file given " +
			"as \"file://PATH\".",
		In:       []string{"input: string"},
		Attrs:    []string{"output_stream: string = 'stderr'", `end: string = '\n'`},
		Stateful: true,
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
	return kernel.Func(func(ctx *kernel.Context) error {
		if first < 0 || calls.Add(1) <= first {
			fmt.Fprint(os.Stderr, message+values(ctx, most, "")+"\n")
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
	return kernel.Func(func(ctx *kernel.Context) error {
		out := os.Stderr
		if stream == "stdout" {
			out = os.Stdout
		}
		if s := ctx.Input(0).Shape(); len(s) != 0 {
			return status.InvalidArgumentf("Input is expected to be scalar, but got %v", s)
		}
		text := tensor.Value[string](ctx.Input(0)) + end
		if isFile {
			return appendFile(path, text)
		}
		if _, err := out.WriteString(text); err != nil {
			return status.Unavailablef("printing to %s: %w", stream, err)
		}
		return nil
	}), nil
}

// appendMu serializes appends of several kernels to one file.
var appendMu sync.Mutex

func appendFile(path, text string) error {
	appendMu.Lock()
	defer appendMu.Unlock()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fileio.Error(path, err)
	}
	if _, err := f.WriteString(text); err != nil {
		f.Close()
		return fileio.Error(path, err)
	}
	return fileio.Error(path, f.Close())
}
