package table

import (
	"math/rand/v2"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

var (
	benchTables = []string{"MutableHashTableV2", "MutableDenseHashTableV2"}
	inOut       = opdef.Attrs{"Tin": tensor.Int64, "Tout": tensor.Int64}
)

// newTable returns the handle of an empty table from int64 to int64, and the kernel that made it.
func newTable(b *testing.B, env *kerneltest.Env, op string) (tensor.Tensor, *kerneltest.Node) {
	b.Helper()
	var markers []tensor.Tensor
	if op == "MutableDenseHashTableV2" {
		markers = []tensor.Tensor{tensor.Scalar[int64](-1), tensor.Scalar[int64](-2)}
	}
	made := must(b, env, op, opdef.Attrs{"key_dtype": tensor.Int64, "value_dtype": tensor.Int64})
	handle, err := made.Run(markers...)
	if err != nil {
		b.Fatal(err)
	}
	return handle[0], made
}

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
	for _, op := range benchTables {
		b.Run(op, func(b *testing.B) {
			env := kerneltest.NewEnv()
			handle, _ := newTable(b, env, op)
			if _, err := must(b, env, "LookupTableInsertV2", inOut).Run(handle, tensor.Vector(keys...), tensor.Vector(keys...)); err != nil {
				b.Fatal(err)
			}
			find := must(b, env, "LookupTableFindV2", inOut)
			b.SetBytes(8 * batch)
			for b.Loop() {
				out, err := find.Run(handle, tensor.Vector(wanted...), tensor.Scalar[int64](-1))
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
	for _, op := range benchTables {
		b.Run(op, func(b *testing.B) {
			env := kerneltest.NewEnv()
			insert := must(b, env, "LookupTableInsertV2", inOut)
			b.SetBytes(2 * 8 * size)
			for b.Loop() {
				handle, made := newTable(b, env, op)
				keys := make([]int64, batch)
				for first := 0; first+batch <= size; first += batch / 2 {
					for i := range keys {
						keys[i] = int64(first+i) * 0x9e3779b97f4a7c1
					}
					if _, err := insert.Run(handle, tensor.Vector(keys...), tensor.Vector(keys...)); err != nil {
						b.Fatal(err)
					}
				}
				made.Close()
			}
		})
	}
}
