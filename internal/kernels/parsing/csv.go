package parsing

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/opkit/cparse"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "DecodeCSV", Doc: "Converts CSV records to tensors, one for each column. An empty field has the " +
			"column's default value.",
		In:  []string{"records: string", "record_defaults: OUT_TYPE"},
		Out: []string{"output: OUT_TYPE"},
		Attrs: []string{
			"OUT_TYPE: list({float32, float64, int32, int64, string}) >= 1", "field_delim: string = ','",
			"use_quote_delim: bool = true", "na_value: string = ''", "select_cols: list(int) = []",
		},
		Shape: func(c *opdef.ShapeContext) error {
			for _, s := range c.In[1:] {
				if _, err := opdef.WithRankAtMost(s, 1); err != nil {
					return err
				}
				if s.Rank() == 1 && s.Dim(0) > 1 {
					return status.InvalidArgumentf("Shape of a default must be a length-0 or length-1 vector, or a scalar.")
				}
			}
			c.SetAll(c.In[0])
			return nil
		},
	}, newDecodeCSV)
}

// csv describes the record format and the selected columns.
type csv struct {
	delim  byte
	quoted bool // whether fields may be quoted
	na     string
	cols   []int64 // selected columns, ascending; empty for all
}

func newCSV(c *kernel.Construction) (*csv, error) {
	delim, cols := c.Attrs.String("field_delim"), c.Attrs.Ints("select_cols")
	switch {
	case len(cols) != 0 && len(cols) != len(c.Outputs):
		return nil, status.InvalidArgumentf("select_cols should match output size")
	case !slices.IsSorted(cols) || len(slices.Compact(slices.Clone(cols))) != len(cols):
		return nil, status.InvalidArgumentf("select_cols should be strictly increasing indices")
	case len(cols) > 0 && cols[0] < 0:
		return nil, status.InvalidArgumentf("select_cols should be non-negative indices")
	case len(delim) != 1:
		return nil, status.InvalidArgumentf("field_delim should be only 1 char")
	}
	return &csv{delim[0], c.Attrs.Bool("use_quote_delim"), c.Attrs.String("na_value"), cols}, nil
}

// column sets element i of an output to the value of text. ok is false if text cannot be parsed.
type column func(out *tensor.Tensor, i int, text string) (ok bool)

var columns = map[tensor.DType]column{
	tensor.Float32: columnOf(func(s string) (float32, bool) { v, ok := cparse.Float(s, 32); return float32(v), ok }),
	tensor.Float64: columnOf(func(s string) (float64, bool) { return cparse.Float(s, 64) }),
	tensor.Int32:   columnOf(func(s string) (int32, bool) { v, ok := cparse.Int(s, 32); return int32(v), ok }),
	tensor.Int64:   columnOf(func(s string) (int64, bool) { return cparse.Int(s, 64) }),
	tensor.String:  columnOf(func(s string) (string, bool) { return s, true }),
}

func columnOf[T tensor.Elem](parse func(string) (T, bool)) column {
	return func(out *tensor.Tensor, i int, text string) bool {
		v, ok := parse(text)
		tensor.Values[T](out)[i] = v
		return ok
	}
}

func newDecodeCSV(c *kernel.Construction) (kernel.Kernel, error) {
	format, err := newCSV(c)
	if err != nil {
		return nil, err
	}
	types := slices.Clone(c.Outputs)
	return kernel.Func(func(ctx *kernel.Context) error {
		outs := membudget.Make[*tensor.Tensor](len(types))
		for f := range types {
			fill := ctx.Input(f + 1)
			switch {
			case fill.Rank() > 1:
				return status.InvalidArgumentf("Each record default should be at most rank 1")
			case fill.NumElements() > 1:
				return status.InvalidArgumentf("There should only be 1 default per field but field %d has %d", f, fill.NumElements())
			}
			var err error
			if outs[f], err = ctx.AllocateLike(f, ctx.Input(0)); err != nil {
				return err
			}
		}
		var fields []string
		at := progress(ctx.Context())
		for i, record := range tensor.Values[string](ctx.Input(0)) {
			if err := at.Pass(len(record)); err != nil {
				return err
			}
			var err error
			if fields, err = format.split(fields[:0], record); err != nil {
				return err
			}
			if len(fields) != len(types) {
				return status.InvalidArgumentf("Expect %d fields but have %d in record %d", len(types), len(fields), i)
			}
			if err := format.set(ctx, outs, i, fields); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// set sets element i of each output to the field of its column.
func (c *csv) set(ctx *kernel.Context, outs []*tensor.Tensor, i int, fields []string) error {
	for f, text := range fields {
		fill, t := ctx.Input(f+1), outs[f].DType()
		switch {
		case text != "" && text != c.na:
			if !columns[t](outs[f], i, text) {
				return status.InvalidArgumentf("Field %d in record %d is not a valid %v: %s", f, i, t, text)
			}
		case fill.NumElements() == 0:
			return status.InvalidArgumentf("Field %d is required but missing in record %d!", f, i)
		case t == tensor.String:
			tensor.Values[string](outs[f])[i] = tensor.Value[string](fill)
		default:
			copy(outs[f].Bytes()[i*t.Size():], fill.Bytes())
		}
	}
	return nil
}

// split appends the selected fields of a record to fields.
func (c *csv) split(fields []string, record string) ([]string, error) {
	wanted := func(col int) bool { return len(c.cols) == 0 || c.cols[len(fields)] == int64(col) }
	col := 0
	for rest := record; rest != ""; {
		if rest[0] == '\n' || rest[0] == '\r' {
			rest = rest[1:]
			continue
		}
		var text string
		var err error
		if c.quoted && rest[0] == '"' {
			text, rest, err = c.quotedField(rest[1:])
		} else {
			text, rest, err = c.plainField(rest)
		}
		if err != nil {
			return nil, err
		}
		if wanted(col) {
			if fields = membudget.Append(fields, text); len(fields) == len(c.cols) {
				return fields, nil
			}
		}
		col++
	}
	if record != "" && record[len(record)-1] == c.delim && wanted(col) {
		fields = append(fields, "")
	}
	return fields, nil
}

// plainField reads a field up to the next delimiter and consumes the delimiter.
func (c *csv) plainField(s string) (field, rest string, err error) {
	field, rest, _ = strings.Cut(s, string([]byte{c.delim}))
	if strings.ContainsAny(field, "\r\n") || c.quoted && strings.Contains(field, `"`) {
		return "", "", status.InvalidArgumentf("Unquoted fields cannot have quotes/CRLFs inside")
	}
	return field, rest, nil
}

// quotedField reads a field after its opening quote, and consumes the closing quote and the
// delimiter. It asks for the memory of a field with escaped quotes, which is a copy.
func (c *csv) quotedField(s string) (field, rest string, err error) {
	escaped := false
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '"')
		if i < 0 {
			return "", "", status.InvalidArgumentf("Quoted field has to end with quote followed by delim or end")
		}
		end := from + i
		switch {
		case end == len(s)-1 || s[end+1] == c.delim:
			field = s[:end]
			if escaped {
				membudget.MustTake(int64(len(field)))
				field = strings.ReplaceAll(field, `""`, `"`)
			}
			return field, s[min(end+2, len(s)):], nil
		case s[end+1] != '"':
			return "", "", status.InvalidArgumentf("Quote inside a string has to be escaped by another quote")
		}
		escaped, from = true, end+2
	}
}
