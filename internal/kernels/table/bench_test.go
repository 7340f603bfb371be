package table

import (
	"math/rand/v2"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// BenchmarkFind looks up 64k keys, half of them present, in tables of a million entries.
func BenchmarkFind(b *testing.B) {
	const size, batch = 1 << 20, 1 << 16
	random := rand.New(rand.NewPCG(1, 2))
	keys, wanted := make([]int64, size), make([]int64, batch)
	for i := range keys {
		keys[i] = random.Int64()
	}
	for i := range wanted {
		wanted[i] = keys[random.IntN(size)] + int64(i%2)
	}
	for _, op := range []string{"MutableHashTableV2", "MutableDenseHashTableV2"} {
		b.Run(op, func(b *testing.B) {
			env := kerneltest.NewEnv()
			types := opdef.Attrs{"Tin": tensor.Int64, "Tout": tensor.Int64}
			var markers []tensor.Tensor
			if op == "MutableDenseHashTableV2" {
				markers = []tensor.Tensor{tensor.Scalar[int64](-1), tensor.Scalar[int64](-2)}
			}
			handle, err := must(b, env, op, opdef.Attrs{"key_dtype": tensor.Int64, "value_dtype": tensor.Int64}).Run(markers...)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := must(b, env, "LookupTableInsertV2", types).Run(handle[0], tensor.Vector(keys...), tensor.Vector(keys...)); err != nil {
				b.Fatal(err)
			}
			find := must(b, env, "LookupTableFindV2", types)
			b.SetBytes(8 * batch)
			for b.Loop() {
				out, err := find.Run(handle[0], tensor.Vector(wanted...), tensor.Scalar[int64](-1))
				if err != nil {
					b.Fatal(err)
				}
				out[0].Release()
			}
		})
	}
}

// BenchmarkInsert inserts batches of 4096 keys, half of them new, into a table that grows to 2^18
// entries.
func BenchmarkInsert(b *testing.B) {
	const size, batch = 1 << 18, 1 << 12
	for _, op := range []string{"MutableHashTableV2", "MutableDenseHashTableV2"} {
		b.Run(op, func(b *testing.B) {
			env := kerneltest.NewEnv()
			types := opdef.Attrs{"Tin": tensor.Int64, "Tout": tensor.Int64}
			var markers []tensor.Tensor
			if op == "MutableDenseHashTableV2" {
				markers = []tensor.Tensor{tensor.Scalar[int64](-1), tensor.Scalar[int64](-2)}
			}
			insert := must(b, env, "LookupTableInsertV2", types)
			b.SetBytes(2 * 8 * size)
			for b.Loop() {
				made := must(b, env, op, opdef.Attrs{"key_dtype": tensor.Int64, "value_dtype": tensor.Int64})
				handle, err := made.Run(markers...)
				if err != nil {
					b.Fatal(err)
				}
				keys := make([]int64, batch)
				for first := 0; first+batch <= size; first += batch / 2 {
					for i := range keys {
						keys[i] = int64(first+i) * 0x9e3779b97f4a7c1
					}
					if _, err := insert.Run(handle[0], tensor.Vector(keys...), tensor.Vector(keys...)); err != nil {
						b.Fatal(err)
					}
				}
				made.Close()
			}
		})
	}
}
