package string

import (
	"math"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerNew(opdef.Def{
		Name: "StringLength", Doc: "Gives the number of bytes, or of characters in UTF-8, of each string.",
		In:    []string{"input: string"},
		Out:   []string{"output: int32"},
		Attrs: []string{"unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'"},
		Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		length := func(s string) int { return len(s) }
		if c.Attrs.String("unit") == "UTF8_CHAR" {
			length = countChars
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			return eachString(ctx, func(s string) (int32, error) {
				n := length(s)
				if n > math.MaxInt32 {
					return 0, status.InvalidArgumentf("a string of %d bytes is too long", n)
				}
				return int32(n), nil
			})
		}), nil
	})
}

// trails reports whether a byte of UTF-8 text continues a character.
func trails(c byte) bool { return c&0xc0 == 0x80 }

// countChars counts the bytes that begin a character, whether the text is valid or not.
func countChars(s string) int {
	n := 0
	for i := range len(s) {
		if !trails(s[i]) {
			n++
		}
	}
	return n
}
