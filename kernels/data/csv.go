package data

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"filenames: string", "compression_type: string", "buffer_size: int64", "header: bool", "field_delim: string",
		"use_quote_delim: bool", "na_value: string", "select_cols: int64", "record_defaults: output_types"}
	attrs := []string{"output_types: list({float32, float64, int32, int64, string}) >= 1", "output_shapes: list(shape) >= 1"}
	doc := "Makes a dataset of the records of files of comma-separated values; a field that is empty has its default."
	for _, name := range []string{"CSVDataset", "ExperimentalCSVDataset"} {
		register(opdef.Def{Name: name, Doc: doc, In: in, Attrs: attrs, Stateful: true}, newCSV)
	}
	register(opdef.Def{Name: "CSVDatasetV2", Doc: doc, In: append(in[:9:9], "exclude_cols: int64"), Attrs: attrs, Stateful: true}, newCSV)
}

// csvDataset takes the records of files apart.
type csvDataset struct {
	stage
	decode   *component
	defaults element
}

func newCSV(n *node, ctx *kernel.Context) (dataset, error) {
	header, err := scalar[bool](n, ctx, "header")
	if err != nil {
		return nil, err
	}
	quoted, err := scalar[bool](n, ctx, "use_quote_delim")
	if err != nil {
		return nil, err
	}
	files, err := newFiles(n, ctx, csvOpener(header, quoted))
	if err != nil {
		return nil, err
	}
	s := n.spec()
	d := &csvDataset{stage: stage{&s, files}}
	if d.defaults, err = n.inputs(ctx, "record_defaults"); err != nil {
		return nil, err
	}
	for i := range d.defaults {
		if d.defaults[i].Rank() > 1 || d.defaults[i].NumElements() > 1 {
			return nil, status.InvalidArgumentf("There should only be 1 default per field but field %d has %d", i, d.defaults[i].NumElements())
		}
	}
	attrs := opdef.Attrs{"OUT_TYPE": s.types, "use_quote_delim": quoted}
	for _, name := range []string{"field_delim", "na_value"} {
		if attrs[name], err = scalar[string](n, ctx, name); err != nil {
			return nil, err
		}
	}
	if len(attrs.String("field_delim")) != 1 {
		return nil, status.InvalidArgumentf("field_delim should be only 1 char")
	}
	if attrs["select_cols"], err = csvColumns(n, ctx, len(s.types)); err != nil {
		return nil, err
	}
	d.decode, err = newComponent(n, "DecodeCSV", attrs)
	return d, err
}

// csvColumns returns which columns are wanted, in order; none for all.
func csvColumns(n *node, ctx *kernel.Context, wanted int) ([]int64, error) {
	chosen, err := csvIndices(n, ctx, "select_cols")
	if err != nil {
		return nil, err
	}
	if len(chosen) > 0 && len(chosen) != wanted {
		return nil, status.InvalidArgumentf("select_cols should match output size")
	}
	excluded, err := csvIndices(n, ctx, "exclude_cols")
	if err != nil || len(excluded) == 0 {
		return chosen, err
	}
	if len(chosen) > 0 {
		return nil, status.InvalidArgumentf("Either select_cols or exclude_cols should be empty")
	}
	for col := int64(0); len(chosen) < wanted; col++ {
		if !slices.Contains(excluded, col) {
			chosen = append(chosen, col)
		}
	}
	return chosen, nil
}

func csvIndices(n *node, ctx *kernel.Context, arg string) ([]int64, error) {
	if !n.takes(arg) {
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
	cols := slices.Clone(tensor.Values[int64](&in[0]))
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
	out, err := it.d.decode.compute(r, slices.Concat(e, it.d.defaults.retain()))
	if err != nil { // the operation counts the records of one call
		text := strings.Replace(status.From(err).Message, " in record 0", " in record", 1)
		return nil, status.Errorf(status.CodeOf(err), "%s", text)
	}
	return out, nil
}

// csvRecords gives the records of a file. A record ends with a line, except for lines within quotes.
type csvRecords struct {
	*bufio.Reader
	quoted bool
}

func csvOpener(header, quoted bool) opener {
	return func(r io.Reader, compression string) (reading, error) {
		from, err := decompress(r, compression)
		if err != nil {
			return nil, err
		}
		records := csvRecords{from, quoted}
		if header {
			if _, err := records.record(); err != nil {
				return nil, status.InvalidArgumentf("Can't read header of file")
			}
		}
		return records, nil
	}
}

func (c csvRecords) record() (string, error) {
	var all strings.Builder
	for {
		line, err := c.ReadString('\n')
		all.WriteString(line)
		if err != nil && (!errors.Is(err, io.EOF) || all.Len() == 0) {
			return "", err
		}
		if err != nil || !c.quoted || strings.Count(all.String(), `"`)%2 == 0 {
			return strings.TrimSuffix(strings.TrimSuffix(all.String(), "\n"), "\r"), nil
		}
	}
}
