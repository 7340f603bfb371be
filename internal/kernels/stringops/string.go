// Package stringops holds the operations on strings: text put together, taken apart, matched,
// replaced, converted from and to numbers, hashed, encoded, and parsed as records of several
// formats.
//
// A string tensor holds bytes. Operations that work on characters take them as UTF-8 and say what
// becomes of bytes that are not. Regular expressions are those of RE2, which is the syntax of Go's
// package regexp.
package stringops

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// eachString makes output 0 of the shape of input 0, a string tensor, by a function of each string.
func eachString[T tensor.Elem](ctx *kernel.Context, f func(string) (T, error)) error {
	in := ctx.Input(0)
	vals := tensor.Values[string](in)
	out, err := ctx.AllocateLike(0, in)
	if err != nil {
		return err
	}
	dst := tensor.Values[T](out)
	for i, s := range vals {
		if dst[i], err = f(s); err != nil {
			return err
		}
	}
	return nil
}
