package stringops

import (
	"fmt"

	"github.com/weft-ml/weft/internal/opkit/elementwise"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "Substr", Doc: "Returns substrings of the given position and length, in bytes or characters. A " +
			"negative position counts from the end.",
		In:    []string{"input: string", "pos: T", "len: T"},
		Out:   []string{"output: string"},
		Attrs: []string{"T: {int32, int64}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"},
		Shape: substrShape,
	}, newSubstr)
}

func substrShape(c *opdef.ShapeContext) error {
	pos, length := c.In[1], c.In[2]
	if length.RankKnown() {
		if _, err := opdef.WithRank(pos, length.Rank()); err != nil {
			return err
		}
	}
	for i := range max(pos.Rank(), 0) {
		if pos.Dim(i) != length.Dim(i) {
			return status.InvalidArgumentf("pos and len shapes must match: %v vs. %v", pos, length)
		}
	}
	out, err := opdef.BroadcastShapes(c.In[0], pos)
	c.SetAll(out)
	return err
}

// cut returns part of a string, and false if the position is out of range.
type cut func(s string, pos, length int64) (string, bool)

func newSubstr(c *kernel.Construction) (kernel.Kernel, error) {
	part, quote := cut(cutBytes), true
	if c.Attrs.String("unit") == "UTF8_CHAR" {
		part, quote = cutChars, false
	}
	return kernel.Func(func(ctx *kernel.Context) error { return substr(ctx, part, quote) }), nil
}

func substr(ctx *kernel.Context, part cut, quote bool) error {
	in, pos, length := ctx.Input(0), ctx.Input(1), ctx.Input(2)
	if !pos.Shape().Equal(length.Shape()) {
		return status.InvalidArgumentf("pos and len should have the same shape, got: %v vs. %v", pos.Shape(), length.Shape())
	}
	shape, err := elementwise.Broadcast(in.Shape(), pos.Shape())
	if err != nil {
		return err
	}
	if len(shape) > 2 && pos.Rank() != 0 && !in.Shape().Equal(pos.Shape()) {
		return status.Unimplementedf("Substr broadcast not implemented for %d dimensions", len(shape))
	}
	out, err := ctx.Allocate(0, shape)
	if err != nil {
		return err
	}
	texts, positions, lengths := tensor.Values[string](in), intarg.Values(pos), intarg.Values(length)
	var fromText, fromPos []int // source positions; nil if both inputs are in order or scalar
	step := 1
	if !in.Shape().Equal(shape) {
		fromText = elementwise.Offsets(shape, in.Shape())
	}
	if len(positions) == 1 {
		step = 0
	} else if !pos.Shape().Equal(shape) {
		fromPos = elementwise.Offsets(shape, pos.Shape())
	}
	for i, dst := 0, tensor.Values[string](out); i < len(dst); i++ {
		if i%checkEvery == 0 && ctx.Context().Err() != nil {
			return ctx.Context().Err()
		}
		from, at := i, i*step
		if fromText != nil {
			from = fromText[i]
		}
		if fromPos != nil {
			at = fromPos[i]
		}
		s := texts[from]
		var ok bool
		if dst[i], ok = part(s, positions[at], lengths[at]); !ok {
			return outside(s, positions[at], i, shape, quote)
		}
	}
	return nil
}

func outside(s string, pos int64, i int, shape tensor.Shape, quote bool) error {
	place := fmt.Sprint(i)
	if len(shape) == 2 && quote {
		place = fmt.Sprintf("(%d, %d)", i/int(shape[1]), i%int(shape[1]))
	}
	if quote {
		return status.InvalidArgumentf("pos %d out of range for string b'%s' at index %s", pos, s, place)
	}
	return status.InvalidArgumentf("pos %d out of range for string at index %s", pos, place)
}

// upTo returns the first n bytes, or all if n is negative.
func upTo(s string, n int64) string {
	if n < 0 || n > int64(len(s)) {
		return s
	}
	return s[:n]
}

func cutBytes(s string, pos, length int64) (string, bool) {
	if pos < 0 {
		pos += int64(len(s))
	}
	if pos < 0 || pos > int64(len(s)) {
		return "", false
	}
	return upTo(s[pos:], length), true
}

func cutChars(s string, pos, length int64) (string, bool) {
	var start int
	var ok bool
	if pos >= 0 {
		start, ok = forward(s, 0, pos)
	} else {
		start, ok = back(s, pos)
		ok = ok && length >= 0
	}
	if !ok {
		return "", false
	}
	end, _ := forward(s, start, length)
	if length < 0 {
		end = start
	}
	return s[start:end], true
}

// forward returns the position n characters after at, and false if the string ends before it.
func forward(s string, at int, n int64) (int, bool) {
	for ; n > 0 && at < len(s); n-- {
		for at++; at < len(s) && isContinuation(s[at]); at++ {
		}
	}
	return at, n <= 0
}

// back returns the position of the character -n from the end, and false if there are fewer.
func back(s string, n int64) (int, bool) {
	at := len(s)
	for ; n < 0 && at > 0; n++ {
		for at--; at > 0 && isContinuation(s[at]); at-- {
		}
	}
	return at, n == 0
}
