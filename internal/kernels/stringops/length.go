package stringops

import (
	"math"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "StringLength", Doc: "Returns the length of each string in bytes or UTF-8 characters.",
		In:    []string{"input: string"},
		Out:   []string{"output: int32"},
		Attrs: []string{"unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"},
		Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		chars := c.Attrs.String("unit") == "UTF8_CHAR"
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			out, err := ctx.AllocateLike(0, in)
			if err != nil {
				return err
			}
			lengths := tensor.Values[int32](out)
			for i, s := range tensor.Values[string](in) {
				if i%checkEvery == 0 && ctx.Context().Err() != nil {
					return ctx.Context().Err()
				}
				n := len(s)
				if chars {
					n = countChars(s)
				}
				if n > math.MaxInt32 {
					return status.InvalidArgumentf("a string of %d bytes is too long", n)
				}
				lengths[i] = int32(n)
			}
			return nil
		}), nil
	})
}

// isContinuation reports whether c is a UTF-8 continuation byte.
func isContinuation(c byte) bool { return c&0xc0 == 0x80 }

// countChars counts the bytes that start a character, even in invalid text.
func countChars(s string) int {
	n := 0
	for i := range len(s) {
		if !isContinuation(s[i]) {
			n++
		}
	}
	return n
}
