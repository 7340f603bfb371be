package stringops

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// space is the set of whitespace bytes of C.
const space = " \t\n\v\f\r"

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "StringStrip", Doc: "Strips leading and trailing whitespace.",
		In:    []string{"input: string"},
		Out:   []string{"output: string"},
		Shape: opdef.SameShape,
	}, func(ctx *kernel.Context) error {
		return eachString(ctx, func(s string) (string, error) { return strings.Trim(s, space), nil })
	})
	for _, op := range []struct {
		name, doc string
		ascii     func(byte) byte
		caser     func(language.Tag, ...cases.Option) cases.Caser
	}{
		{"StringLower", "Converts strings to lower case: only ASCII letters, or all letters with encoding \"utf-8\".", lowerByte, cases.Lower},
		{"StringUpper", "Converts strings to upper case: only ASCII letters, or all letters with encoding \"utf-8\".", upperByte, cases.Upper},
	} {
		kernel.RegisterNew(opdef.Def{
			Name: op.name, Doc: op.doc,
			In:    []string{"input: string"},
			Out:   []string{"output: string"},
			Attrs: []string{"encoding: string = ''"},
			Shape: opdef.SameShape,
		}, func(c *kernel.Construction) (kernel.Kernel, error) {
			switch encoding := c.Attrs.String("encoding"); encoding {
			case "":
				return mapBytes(op.ascii), nil
			case "utf-8":
				return kernel.Func(func(ctx *kernel.Context) error {
					return eachString(ctx, func(s string) (string, error) {
						s, _, _ = strings.Cut(s, "\x00") // TensorFlow's string ends at a NUL byte
						if len(s) >= largeReplaced {
							membudget.MustTake(maxCaseGrowth * int64(len(s)))
						}
						return op.caser(language.Und).String(validUTF8(s)), nil
					})
				}), nil
			default:
				return nil, status.InvalidArgumentf("only utf-8 or '' (no encoding) is supported, received %s", encoding)
			}
		})
	}
}

// maxCaseGrowth is about how much memory the conversion of a text takes, relative to its size. The
// text grows while it is converted, and a character of two bytes may become three of two bytes.
const maxCaseGrowth = 4

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func upperByte(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c + 'A' - 'a'
	}
	return c
}

// validUTF8 replaces invalid sequences.
func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b []byte
	for s != "" {
		r, size := nextUTF8(s)
		if r == malformed {
			r = utf8.RuneError
		}
		b, s = utf8.AppendRune(withRoom(b), r), s[size:]
	}
	return string(b)
}

// mapBytes returns the kernel that applies f to each byte of all strings.
func mapBytes(f func(byte) byte) kernel.Kernel {
	var table [256]byte
	for c := range table {
		table[c] = f(byte(c))
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		out, err := ctx.AllocateLike(0, in)
		if err != nil {
			return err
		}
		b := newBuilder(tensor.Values[string](out))
		for _, s := range tensor.Values[string](in) {
			if len(s) >= blockSize { // the buffer would grow with it
				b.mapped(s, &table)
				continue
			}
			from := len(b.buf)
			//sizedmake:ok less than blockSize
			b.buf = append(b.buf, s...)
			added := b.buf[from:]
			for i, c := range added {
				added[i] = table[c]
			}
			b.next()
		}
		b.flush()
		return nil
	})
}
