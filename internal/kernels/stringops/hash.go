package stringops

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/weft-ml/weft/internal/numeric/farmhash"
	"github.com/weft-ml/weft/internal/numeric/murmur"
	"github.com/weft-ml/weft/internal/numeric/siphash"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "StringToHashBucket", Doc: "Returns the hash of each string modulo the number of buckets.",
		In:    []string{"string_tensor: string"},
		Out:   []string{"output: int64"},
		Attrs: []string{"num_buckets: int >= 1"},
		Shape: opdef.SameShape,
	}, buckets(func(*kernel.Construction) (func(string) uint64, error) { return murmur.Sum64, nil }))
	kernel.RegisterNew(opdef.Def{
		Name: "StringToHashBucketFast", Doc: "Returns the hash of each string modulo the number of buckets.",
		In:    []string{"input: string"},
		Out:   []string{"output: int64"},
		Attrs: []string{"num_buckets: int >= 1"},
		Shape: opdef.SameShape,
	}, buckets(func(*kernel.Construction) (func(string) uint64, error) { return fingerprint, nil }))
	kernel.RegisterNew(opdef.Def{
		Name: "StringToHashBucketStrong", Doc: "Returns the keyed hash of each string modulo the number of buckets. A secret key " +
			"of two numbers protects against crafted collisions.",
		In:    []string{"input: string"},
		Out:   []string{"output: int64"},
		Attrs: []string{"num_buckets: int >= 1", "key: list(int)"},
		Shape: opdef.SameShape,
	}, buckets(keyed))
	kernel.RegisterNew(opdef.Def{
		Name: "_TensorToHashBucketFast", Doc: "Returns the hash of each integer, written in decimal, modulo the number of buckets.",
		In:    []string{"input: T"},
		Out:   []string{"output: int64"},
		Attrs: []string{"T: {int8, uint8, int16, uint16, int32, uint32, int64, uint64}", "num_buckets: int >= 1"},
		Shape: opdef.SameShape,
	}, newIntegerBuckets)
}

func fingerprint(s string) uint64 { return farmhash.Fingerprint64([]byte(s)) }

// buckets returns the constructor of kernels that use a hash function.
func buckets(hash func(*kernel.Construction) (func(string) uint64, error)) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		sum, err := hash(c)
		if err != nil {
			return nil, err
		}
		n := uint64(c.Attrs.Int("num_buckets"))
		share := math.MaxUint64 / n
		return kernel.Func(func(ctx *kernel.Context) error {
			in := ctx.Input(0)
			out, err := ctx.AllocateLike(0, in)
			if err != nil {
				return err
			}
			dst := tensor.Values[int64](out)
			for i, s := range tensor.Values[string](in) {
				if i%checkEvery == 0 && ctx.Context().Err() != nil {
					return ctx.Context().Err()
				}
				dst[i] = int64(remainder(sum(s), n, share))
			}
			return nil
		}), nil
	}
}

// remainder returns v modulo n without a division. share is the largest uint64 divided by n.
func remainder(v, n, share uint64) uint64 {
	q, _ := bits.Mul64(v, share) // v/n or v/n-1
	r := v - q*n
	if r >= n {
		r -= n
	}
	return r
}

func keyed(c *kernel.Construction) (func(string) uint64, error) {
	key := c.Attrs.Ints("key")
	if len(key) != 2 {
		return nil, status.InvalidArgumentf("Key must have 2 elements")
	}
	return func(s string) uint64 { return siphash.Sum64(uint64(key[0]), uint64(key[1]), []byte(s)) }, nil
}

func newIntegerBuckets(c *kernel.Construction) (kernel.Kernel, error) {
	n := uint64(c.Attrs.Int("num_buckets"))
	return kernel.Func(func(ctx *kernel.Context) error {
		in := ctx.Input(0)
		out, err := ctx.AllocateLike(0, in)
		if err != nil {
			return err
		}
		dst := tensor.Values[int64](out)
		var buf [20]byte
		for i, v := range intarg.Values(in) {
			digits := strconv.AppendInt(buf[:0], v, 10)
			if in.DType() == tensor.Uint64 {
				digits = strconv.AppendUint(buf[:0], uint64(v), 10)
			}
			dst[i] = int64(farmhash.Fingerprint64(digits) % n)
		}
		return nil
	}), nil
}
