package table

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/unsized"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Special column indices.
const (
	lineNumber = -1
	wholeLine  = -2
)

// vocabulary describes how a text file is read.
type vocabulary struct {
	key, value int    // column indices
	size       int    // number of lines to read, or -1 for all
	delimiter  string // column delimiter
	offset     int64  // added to line numbers
}

// fileName returns the file name that is input i. Errors use the given names for the input and its
// content.
func fileName(ctx *kernel.Context, i int, input, what string) (string, error) {
	in := ctx.Input(i)
	if in.Rank() != 0 {
		return "", status.InvalidArgumentf("%s should be a single string, but got %v", input, in.Shape())
	}
	name := tensor.Value[string](in)
	if name == "" {
		return "", status.InvalidArgumentf("%s cannot be empty.", what)
	}
	return name, nil
}

// fill initializes a table from a file. Operations on the table are not blocked while the file is
// read. A concurrent second initialization finds the table filled.
func (v *vocabulary) fill(ctx context.Context, a *membudget.Account, files fileio.Files, t *Table, path string) error {
	_, err := t.fixed()
	if err == nil {
		err = v.check(&t.layout)
	}
	if err != nil {
		return err
	}
	keys, values, err := v.read(files, path, t.keyType, t.valueType)
	if err != nil {
		return err
	}
	return t.Initialize(ctx, a, &keys, &values)
}

// check compares the columns with the dtypes they are parsed to.
func (v *vocabulary) check(l *layout) error {
	text := func(t tensor.DType) bool { return t == tensor.String || t.IsInteger() }
	switch {
	case v.key == lineNumber && l.keyType != tensor.Int64:
		return status.InvalidArgumentf("Key index for line number requires table key dtype of int64, got %v", l.keyType)
	case v.key == wholeLine && !text(l.keyType):
		return status.InvalidArgumentf("Key index for whole line requires string or integer table key, got %v", l.keyType)
	case v.value == lineNumber && l.valueType != tensor.Int64:
		return status.InvalidArgumentf("Value index for line number requires table value dtype of int64, got %v", l.valueType)
	case v.value == wholeLine && !text(l.valueType):
		return status.InvalidArgumentf("Value index for whole line requires table value dtype of integer or string, got %v", l.valueType)
	}
	return nil
}

// read returns the keys and values in a file.
func (v *vocabulary) read(files fileio.Files, path string, key, value tensor.DType) (keys, values tensor.Tensor, err error) {
	f, err := files.Open(path)
	if err != nil {
		return keys, values, err
	}
	defer f.Close()
	r := &reader{vocabulary: v, path: path, in: bufio.NewReaderSize(f, 1<<18)}
	if r.keys, err = newCells(v.key, key, v.offset); err == nil {
		r.values, err = newCells(v.value, value, v.offset)
	}
	for err == nil {
		err = r.next()
	}
	if !errors.Is(err, io.EOF) {
		return keys, values, err
	}
	switch {
	case r.lines == 0 && v.size == 0:
		return keys, values, status.OutOfRangef("Finished reading 0 of lines from %s", path)
	case r.lines == 0:
		return keys, values, status.OutOfRangef("Read less bytes than requested")
	}
	return r.keys.tensor(), r.values.tensor(), nil
}

// reader reads a file into keys and values.
type reader struct {
	*vocabulary
	path         string
	in           *bufio.Reader
	lines, bytes int64 // read so far
	keys, values cells
	meter        membudget.Meter // of the text of lines
}

// next reads a line. It returns io.EOF at the end or after the requested number of lines.
func (r *reader) next() error {
	line, err := r.line()
	switch {
	case errors.Is(err, io.EOF) && r.size != -1 && r.lines != int64(r.size):
		return status.InvalidArgumentf("Invalid vocab_size in %s: expected %d but got %d", r.path, r.size, r.lines)
	case err != nil:
		return err
	case r.size != -1 && r.lines >= int64(r.size):
		return io.EOF
	case line == "":
		return status.InvalidArgumentf("Invalid content in %s: empty line found at position %d.", r.path, r.bytes)
	}
	var columns []string
	if last := max(r.key, r.value); last >= 0 {
		r.meter.MustTake(16 * strings.Count(line, r.delimiter))
		columns = strings.Split(line, r.delimiter)
		if len(columns) <= last {
			return status.InvalidArgumentf("Invalid number of columns in %s line %d (%s) : expected at least %d got %d",
				r.path, r.lines, shortened(line), last+1, len(columns))
		}
	}
	if err := r.keys.add(line, columns, r.lines); err != nil {
		return err
	}
	if err := r.values.add(line, columns, r.lines); err != nil {
		return err
	}
	r.lines++
	return nil
}

// shortened returns the start of a line for an error.
func shortened(line string) string {
	const limit = 1 << 10
	if len(line) <= limit {
		return line
	}
	return line[:limit] + "..."
}

// line returns the next line without its terminator.
func (r *reader) line() (string, error) {
	line, err := unsized.Line(r.in)
	r.meter.MustTake(len(line))
	r.bytes += int64(len(line))
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), nil
}
