package stringops

import (
	"unicode/utf8"

	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// repairs are the attributes that control the handling of invalid characters.
var repairs = []string{
	"errors: {'strict', 'replace', 'ignore'} = 'replace'", "replacement_char: int = 65533", "replace_control_characters: bool = false",
}

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "UnicodeTranscode", Doc: "Transcodes strings from one encoding to another.",
		In:    []string{"input: string"},
		Out:   []string{"output: string"},
		Attrs: append([]string{"input_encoding: string", "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}"}, repairs...),
		Shape: opdef.SameShape,
	}, newTranscode)
	kernel.RegisterNew(opdef.Def{
		Name: "UnicodeDecode", Doc: "Decodes strings to a ragged matrix of code points.",
		In:    []string{"input: string"},
		Out:   []string{"row_splits: Tsplits", "char_values: int32"},
		Attrs: append(append([]string{"input_encoding: string"}, repairs...), "Tsplits: {int32, int64} = int64"),
		Shape: decodeShape,
	}, newDecode)
	kernel.RegisterNew(opdef.Def{
		Name: "UnicodeDecodeWithOffsets", Doc: "Decodes strings to a ragged matrix of code points, and returns the byte offset of each.",
		In:    []string{"input: string"},
		Out:   []string{"row_splits: Tsplits", "char_values: int32", "char_to_byte_starts: int64"},
		Attrs: append(append([]string{"input_encoding: string"}, repairs...), "Tsplits: {int32, int64} = int64"),
		Shape: decodeShape,
	}, newDecode)
	kernel.RegisterNew(opdef.Def{
		Name: "UnicodeEncode", Doc: "Encodes the rows of a ragged matrix of code points as strings.",
		In:  []string{"input_values: int32", "input_splits: Tsplits"},
		Out: []string{"output: string"},
		Attrs: []string{
			"errors: {'ignore', 'replace', 'strict'} = 'replace'", "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
			"replacement_char: int = 65533", "Tsplits: {int32, int64} = int64",
		},
		Shape: encodeShape,
	}, newEncode)
}

func decodeShape(c *opdef.ShapeContext) error {
	n := shapefn.Count(c.In[0])
	for i := range c.Out {
		c.Out[i] = shapefn.Of(shapefn.Unknown)
	}
	c.Out[0] = shapefn.Of(shapefn.Add(n, 1))
	return nil
}

func encodeShape(c *opdef.ShapeContext) error {
	if err := shapefn.CheckRanks(c, 0, 1, 1); err != nil {
		return err
	}
	n, err := shapefn.Minus(c.In[1].Dim(0), 1)
	c.Out[0] = shapefn.Of(n)
	return err
}

// repair controls the handling of invalid and control characters.
type repair struct {
	strict, ignore, controls bool
	replacement              rune
}

func newRepair(attrs opdef.Attrs) (repair, error) {
	r := repair{
		strict: attrs.String("errors") == "strict", ignore: attrs.String("errors") == "ignore",
		controls: attrs.Bool("replace_control_characters"), replacement: rune(attrs.Int("replacement_char")),
	}
	if v := attrs.Int("replacement_char"); v < 0 || v > utf8.MaxRune {
		return r, status.InvalidArgumentf("replacement_char out of unicode codepoint range")
	}
	return r, nil
}

// text decodes strings in one encoding.
type text struct {
	repair
	in   charset
	next nextChar // nil before the first string, whose byte order mark applies to all
}

func newText(attrs opdef.Attrs) (text, error) {
	r, err := newRepair(attrs)
	if err != nil {
		return text{}, err
	}
	in, err := findCharset(attrs.String("input_encoding"))
	return text{repair: r, in: in}, err
}

// each calls f for each character of s, after repair, with its byte offset.
func (t *text) each(s string, f func(r rune, at int)) error {
	at := 0
	if t.next == nil && s != "" {
		t.next, at = t.in(s)
	}
	next := t.next
	for begin := 0; at < len(s); begin = at {
		r, size := next(s[at:])
		if at += size; r == malformed && at == len(s) {
			t.next = nil // a truncated string ends the effect of its byte order mark
		}
		if r == malformed || t.controls && r <= 0x1f {
			if t.strict {
				return status.InvalidArgumentf("Invalid formatting on input string")
			}
			if t.ignore {
				continue
			}
			r = t.replacement
		}
		f(r, begin)
	}
	return nil
}

func newTranscode(c *kernel.Construction) (kernel.Kernel, error) {
	t, err := newText(c.Attrs)
	if err != nil {
		return nil, err
	}
	put := appendChar[c.Attrs.String("output_encoding")]
	return kernel.Func(func(ctx *kernel.Context) error {
		t := t // a copy for this call
		return eachString(ctx, func(s string) (string, error) {
			out := membudget.MakeCap[byte](len(s))
			err := t.each(s, func(r rune, _ int) { out = put(withRoom(out), r) })
			if len(out) >= largeReplaced {
				membudget.MustTake(int64(len(out)))
			}
			return string(out), err
		})
	}), nil
}

func newDecode(c *kernel.Construction) (kernel.Kernel, error) {
	t, err := newText(c.Attrs)
	if err != nil {
		return nil, err
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		t, in := t, tensor.Values[string](ctx.Input(0)) // t is a copy for this call
		splits := membudget.Make[int64](len(in) + 1)[:1]
		var chars []int32
		var starts []int64
		for _, s := range in {
			err := t.each(s, func(r rune, at int) { chars, starts = membudget.Append(chars, r), membudget.Append(starts, int64(at)) })
			if err != nil {
				return err
			}
			splits = membudget.Append(splits, int64(len(chars)))
		}
		out, err := ctx.Allocate(0, tensor.Shape{int64(len(splits))})
		if err != nil {
			return err
		}
		intarg.Set(out, splits)
		ctx.SetOutput(1, tensor.Vector(chars...))
		if ctx.NumOutputs() > 2 {
			ctx.SetOutput(2, tensor.Vector(starts...))
		}
		return nil
	}), nil
}

func newEncode(c *kernel.Construction) (kernel.Kernel, error) {
	r, err := newRepair(c.Attrs)
	if err != nil {
		return nil, err
	}
	put := appendChar[c.Attrs.String("output_encoding")]
	return kernel.Func(func(ctx *kernel.Context) error {
		if ctx.Input(0).Rank() != 1 || ctx.Input(1).Rank() != 1 {
			return status.InvalidArgumentf("Both the input_tensor and input_splits should be of rank 1. ")
		}
		chars, splits := tensor.Values[int32](ctx.Input(0)), intarg.Values(ctx.Input(1))
		if err := checkRows(splits, len(chars)); err != nil {
			return err
		}
		texts := membudget.Make[string](len(splits) - 1)
		var meter membudget.Meter
		for i := range texts {
			var b []byte
			for _, c := range chars[splits[i]:splits[i+1]] {
				if !utf8.ValidRune(c) {
					if r.strict {
						return status.InvalidArgumentf("Code point is out of range for Unicode, or is a surrogate.")
					}
					if r.ignore {
						continue
					}
					c = r.replacement
				}
				b = put(withRoom(b), c)
			}
			meter.MustTake(len(b))
			texts[i] = string(b)
		}
		ctx.SetOutput(0, tensor.Vector(texts...))
		return nil
	}), nil
}

// withRoom returns b with room for one more character. It panics with a *membudget.Exceeded if
// there is no memory for it.
func withRoom(b []byte) []byte {
	if cap(b)-len(b) >= utf8.UTFMax {
		return b
	}
	return append(membudget.MakeCap[byte](2*cap(b)+utf8.UTFMax), b...)
}

// checkRows checks the row splits of a ragged matrix of n values.
func checkRows(splits []int64, n int) error {
	switch {
	case len(splits) == 0:
		return status.InvalidArgumentf("Input_splits should contain elements, but given input_values has 0 elements")
	case splits[0] != 0:
		return status.InvalidArgumentf("First value in input_splits must be zero.")
	case splits[len(splits)-1] != int64(n):
		return status.InvalidArgumentf("Last value in input_splits must be equal to length of input_tensor.")
	}
	for i := 1; i < len(splits); i++ {
		switch {
		case splits[i-1] > splits[i]:
			return status.InvalidArgumentf("Values in input_splits must be equal or in ascending order.")
		case splits[i] > int64(n):
			return status.InvalidArgumentf("Values in input_splits must be less than or equal to input_tensor length.")
		}
	}
	return nil
}
