package data

import (
	"bufio"
	"errors"
	"io"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/unsized"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"filenames: string", "compression_type: string", "buffer_size: int64", "header: bool", "field_delim: string",
		"use_quote_delim: bool", "na_value: string", "select_cols: int64", "record_defaults: output_types"}
	attrs := []string{"output_types: list({float32, float64, int32, int64, string}) >= 1", "output_shapes: list(shape) >= 1"}
	doc := "Creates a dataset of the records of CSV files. An empty field has its default value."
	for _, name := range []string{"CSVDataset", "ExperimentalCSVDataset"} {
		register(opdef.Def{Name: name, Doc: doc, In: in, Attrs: attrs, Stateful: true, Class: opdef.FilesRead}, newCSV)
	}
	register(opdef.Def{Name: "CSVDatasetV2", Doc: doc, In: append(in[:9:9], "exclude_cols: int64"), Attrs: attrs, Stateful: true, Class: opdef.FilesRead}, newCSV)
}

// csvDataset parses the records of CSV files.
type csvDataset struct {
	stage
	format csvFormat
}

func newCSV(n *node, ctx *kernel.Context) (dataset, error) {
	s := n.spec()
	d := &csvDataset{stage: stage{spec: &s}, format: csvFormat{types: s.types}}
	f := &d.format
	var err error
	if f.selected, err = csvIndices(n, ctx, "select_cols"); err != nil {
		return nil, err
	}
	if f.excluded, err = csvIndices(n, ctx, "exclude_cols"); err != nil {
		return nil, err
	}
	switch {
	case len(f.selected) > 0 && len(f.selected) != len(s.types):
		return nil, status.InvalidArgumentf("select_cols should match output size")
	case len(f.selected) > 0 && len(f.excluded) > 0:
		return nil, status.InvalidArgumentf("Either select_cols or exclude_cols should be empty")
	}
	header, err := scalar[bool](n, ctx, "header")
	if err != nil {
		return nil, err
	}
	if f.quoted, err = scalar[bool](n, ctx, "use_quote_delim"); err != nil {
		return nil, err
	}
	delim, err := scalar[string](n, ctx, "field_delim")
	if err != nil {
		return nil, err
	}
	if len(delim) != 1 {
		return nil, status.InvalidArgumentf("field_delim should be only 1 char")
	}
	f.delim = delim[0]
	if f.na, err = scalar[string](n, ctx, "na_value"); err != nil {
		return nil, err
	}
	if f.defaults, err = n.inputs(ctx, "record_defaults"); err != nil {
		return nil, err
	}
	for i := range f.defaults {
		if f.defaults[i].Rank() > 1 || f.defaults[i].NumElements() > 1 {
			return nil, status.InvalidArgumentf("There should only be 1 default per field but field %d has %d", i, f.defaults[i].NumElements())
		}
	}
	d.input, err = newFiles(n, ctx, csvOpener(f, header))
	return d, err
}

func csvIndices(n *node, ctx *kernel.Context, arg string) ([]int64, error) {
	if !n.hasArg(arg) {
		return nil, nil
	}
	in, err := n.inputs(ctx, arg)
	if err != nil {
		return nil, err
	}
	defer in.release()
	if in[0].Rank() != 1 {
		return nil, status.InvalidArgumentf("`%s` must be a vector.", arg)
	}
	cols := membudget.AppendAll(nil, tensor.Values[int64](&in[0])...)
	for i, col := range cols {
		if col < 0 {
			return nil, status.InvalidArgumentf("%s should be non-negative indices", arg)
		}
		if i > 0 && col <= cols[i-1] {
			return nil, status.InvalidArgumentf("%s should be strictly increasing indices", arg)
		}
	}
	return cols, nil
}

func (d *csvDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &csvIterator{src, d}, err
}

type csvIterator struct {
	source
	d *csvDataset
}

func (it *csvIterator) next(r *run) (element, error) {
	e, err := it.input.next(r)
	if err != nil {
		return nil, err
	}
	defer e.release()
	return it.d.format.parse(tensor.Value[string](&e[0]))
}

// csvRecords reads the records of a file. A record ends at a line break outside of quotes.
type csvRecords struct {
	*bufio.Reader
	format *csvFormat
}

func csvOpener(format *csvFormat, header bool) opener {
	return func(f *fileio.File, compression string) (recordReader, error) {
		from, err := decompress(f, compression)
		if err != nil {
			return nil, err
		}
		records := csvRecords{from, format}
		if header {
			if _, err := records.record(); err != nil {
				return nil, status.InvalidArgumentf("Can't read header of file")
			}
		}
		return records, nil
	}
}

func (c csvRecords) record() (string, error) {
	var all []byte
	for state := betweenFields; ; {
		b, err := c.ReadByte()
		if errors.Is(err, io.EOF) && len(all) > 0 {
			return unsized.String(all)
		}
		if err != nil {
			return "", err
		}
		if state = c.format.step(state, b); state != endOfRecord {
			if all, err = unsized.Grow(all); err != nil {
				return "", err
			}
			//sizedmake:ok unsized.Grow has asked for the memory
			all = append(all, b)
			continue
		}
		if next, err := c.Peek(1); b == '\r' && err == nil && next[0] == '\n' {
			_, _ = c.ReadByte() // cannot fail: the byte was peeked
		}
		return unsized.String(all)
	}
}
