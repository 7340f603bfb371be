// Package stringops implements string operations: joining, splitting, matching, replacing,
// conversion to and from numbers, hashing and encoding.
//
// A string tensor holds bytes. Operations on characters decode them as UTF-8 and document how they
// treat invalid bytes. Regular expressions use RE2 syntax, which package regexp shares.
package stringops

import (
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// checkEvery is the number of strings between two looks at the context of a step. Many strings may
// share a long text, so that they take time and no memory.
const checkEvery = 64

// eachString sets output 0, of the shape of input 0, by applying a function to each string.
func eachString[T tensor.Elem](ctx *kernel.Context, f func(string) (T, error)) error {
	in := ctx.Input(0)
	vals := tensor.Values[string](in)
	out, err := ctx.AllocateLike(0, in)
	if err != nil {
		return err
	}
	dst := tensor.Values[T](out)
	var meter membudget.Meter
	for i, s := range vals {
		if i%checkEvery == 0 && ctx.Context().Err() != nil {
			return ctx.Context().Err()
		}
		meter.MustTake(len(s))
		if dst[i], err = f(s); err != nil {
			return err
		}
		if text, ok := any(dst[i]).(string); ok { // most results are as long as their input
			meter.MustTake(max(0, len(text)-len(s)))
		}
	}
	return nil
}
