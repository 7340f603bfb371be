// Package featurecross computes crossed features. A cross combines one value of each of several
// features, for every row, into joined text or a hash. Operations on sparse and on ragged tensors
// share it.
package featurecross

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/weft-ml/weft/internal/numeric/farmhash"
	"github.com/weft-ml/weft/internal/numeric/siphash"
	"github.com/weft-ml/weft/internal/opkit/intarg"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Separator joins the values of a combination in operations without a separator attribute.
const Separator = "_X_"

// Column is a feature: its values, of type int64 or string, and the start of each row in them.
type Column struct {
	ints   []int64
	texts  []string
	splits []int64
	dense  bool
}

// Ragged returns a column whose row r has the values splits[r] to splits[r+1].
func Ragged(values *tensor.Tensor, splits []int64) *Column {
	c := &Column{splits: splits}
	if values.DType() == tensor.String {
		c.texts = tensor.Values[string](values)
	} else {
		c.ints = tensor.Values[int64](values)
	}
	return c
}

// Dense returns a column with the rows of a matrix.
func Dense(matrix *tensor.Tensor) *Column {
	splits := membudget.Make[int64](matrix.Dim(0) + 1)
	for r := range splits {
		splits[r] = int64(r * matrix.Dim(1))
	}
	c := Ragged(matrix, splits)
	c.dense = true
	return c
}

// Sparse returns a column with the elements of a sparse matrix in row order: element i is in row
// indices[i, 0].
func Sparse(indices, values *tensor.Tensor, rows int64) (*Column, error) {
	dims, err := intarg.Shape([]int64{rows})
	if err != nil {
		return nil, err
	}
	// Each row takes memory here even if it has no elements.
	splits, err := tensor.Alloc(tensor.Int64, tensor.Shape{dims[0] + 1})
	if err != nil {
		return nil, err
	}
	c := Ragged(values, tensor.Values[int64](&splits))
	at, ix := 0, intarg.Values(indices)
	c.splits[0] = 0
	for r := range rows {
		for at < values.NumElements() && ix[2*at] <= r {
			at++
		}
		c.splits[r+1] = int64(at)
	}
	return c, nil
}

// Rows returns the number of rows.
func (c *Column) Rows() int { return len(c.splits) - 1 }

// text returns value i as text.
func (c *Column) text(i int64) string {
	if c.texts != nil {
		return c.texts[i]
	}
	return strconv.FormatInt(c.ints[i], 10)
}

// Splits returns the index of each row's first combination and, at the end, the total number. It
// returns ResourceExhausted if that number is too large for memory, and the error of ctx when ctx
// ends: rows and columns need no values.
func Splits(ctx context.Context, columns []*Column, rows int) ([]int64, error) {
	splits := membudget.Make[int64](rows + 1)[:1]
	p := stepctx.Progress{Context: ctx, Each: 4 * (len(columns) + 1)}
	for r := range rows {
		if err := p.Pass(0); err != nil {
			return nil, err
		}
		n := uint64(1)
		for _, c := range columns {
			var over uint64
			if over, n = bits.Mul64(n, uint64(c.splits[r+1]-c.splits[r])); over != 0 {
				n = math.MaxUint64
				break
			}
		}
		sum := uint64(splits[r]) + n
		if sum > math.MaxInt64/16 || n > math.MaxInt64/16 {
			return nil, status.ResourceExhaustedf("the features of row %d have too many combinations", r)
		}
		splits = append(splits, int64(sum))
	}
	return splits, nil
}

// Combination computes one crossed value. at holds the position of the value to use in each column.
type Combination[T any] func(at []int64) T

// checkEvery is the number of combinations between two looks at the context of a step.
const checkEvery = 16

// Row sets out to the combinations of one row. The last column varies fastest. When ctx ends, Row
// returns the error of ctx.
func Row[T any](ctx context.Context, columns []*Column, r int, out []T, combine Combination[T]) error {
	at := membudget.Make[int64](len(columns))
	for k, c := range columns {
		at[k] = c.splits[r]
	}
	for i := range out {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		out[i] = combine(at)
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < columns[k].splits[r+1] {
				break
			}
			at[k] = columns[k].splits[r]
		}
	}
	return nil
}

// Join returns the combination that joins the values as text with a separator. It panics as
// [membudget.Make] does.
func Join(columns []*Column, separator string) Combination[string] {
	parts := membudget.Make[string](len(columns))
	var meter membudget.Meter
	return func(at []int64) string {
		for k, c := range columns {
			parts[k] = c.text(at[k])
		}
		return meter.Join(parts, separator)
	}
}

// Hash returns the combination that hashes the fingerprints of the values, starting from seed, to
// one of the given number of buckets. With 0 buckets the range is all non-negative int64 values.
func Hash(columns []*Column, seed uint64, buckets int64) Combination[int64] {
	return func(at []int64) int64 {
		sum := seed
		for k, c := range columns {
			if c.texts != nil {
				sum = concatenate(sum, farmhash.Fingerprint64([]byte(c.texts[at[k]])))
			} else {
				sum = concatenate(sum, uint64(c.ints[at[k]]))
			}
		}
		return bucket(sum, buckets)
	}
}

// CombinedHash is Hash with the seed and the way of combination that TensorFlow had first.
func CombinedHash(columns []*Column, buckets int64) Combination[int64] {
	const seed = 0xDECAFCAFFE
	return func(at []int64) int64 {
		sum := uint64(seed)
		for k, c := range columns {
			h := uint64(0)
			if c.texts != nil {
				h = farmhash.Fingerprint64([]byte(c.texts[at[k]]))
			} else {
				h = uint64(c.ints[at[k]])
			}
			// the shift keeps the sign, as in TensorFlow
			sum ^= h + 0x9e3779b97f4a7800 + sum<<10 + uint64(int64(sum)>>4)
		}
		return bucket(sum, buckets)
	}
}

// KeyedHash is Hash without a seed. Strong hashes use the key.
func KeyedHash(columns []*Column, key [2]uint64, strong bool, buckets int64) Combination[int64] {
	return func(at []int64) int64 {
		sum := uint64(0)
		for k, c := range columns {
			h := c.keyed(at[k], key, strong)
			if k == 0 {
				sum = h
			} else {
				sum = concatenate(sum, h)
			}
		}
		return bucket(sum, buckets)
	}
}

// keyed hashes value i. For compatibility with TensorFlow, only the low four bytes of integers
// count, and a weak hash of an integer in a dense column is the integer itself.
func (c *Column) keyed(i int64, key [2]uint64, strong bool) uint64 {
	var b []byte
	switch {
	case c.texts != nil:
		b = []byte(c.texts[i])
	case c.dense && !strong:
		return uint64(c.ints[i])
	default:
		b = binary.LittleEndian.AppendUint32(nil, uint32(c.ints[i]))
	}
	if strong {
		return siphash.Sum64(key[0], key[1], b)
	}
	return farmhash.Fingerprint64(b)
}

func bucket(sum uint64, buckets int64) int64 {
	if buckets <= 0 {
		buckets = math.MaxInt64
	}
	return int64(sum % uint64(buckets))
}

// concatenate mixes two fingerprints into one with MurmurHash's mixing steps.
func concatenate(a, b uint64) uint64 {
	const mul = 0xc6a4a7935bd1e995
	mix := func(v uint64) uint64 { return v ^ v>>47 }
	sum := a ^ mul
	sum = (sum ^ mix(b*mul)*mul) * mul
	return mix(mix(sum) * mul)
}
