package table

import (
	"sync"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// must creates a node.
func must(t testing.TB, env *kerneltest.Env, op string, attrs opdef.Attrs) *kerneltest.Node {
	t.Helper()
	n, err := env.Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestConcurrentChanges inserts, finds, exports and removes concurrently. Every value found must
// belong to its key, and exported tensors must not change.
func TestConcurrentChanges(t *testing.T) {
	for _, tt := range []struct {
		op     string
		attrs  opdef.Attrs
		inputs []tensor.Tensor
	}{
		{"MutableHashTableV2", opdef.Attrs{}, nil},
		{"MutableDenseHashTableV2", opdef.Attrs{"initial_num_buckets": int64(4)}, []tensor.Tensor{tensor.Scalar[int64](-1), tensor.Scalar[int64](-2)}},
	} {
		t.Run(tt.op, func(t *testing.T) {
			env := kerneltest.NewEnv()
			tt.attrs["key_dtype"], tt.attrs["value_dtype"] = tensor.Int64, tensor.Int64
			in, export := opdef.Attrs{"Tin": tensor.Int64, "Tout": tensor.Int64}, opdef.Attrs{"Tkeys": tensor.Int64, "Tvalues": tensor.Int64}
			out, err := must(t, env, tt.op, tt.attrs).Run(tt.inputs...)
			if err != nil {
				t.Fatal(err)
			}
			insert, find, read := must(t, env, "LookupTableInsertV2", in), must(t, env, "LookupTableFindV2", in), must(t, env, "LookupTableExportV2", export)
			remove := must(t, env, "LookupTableRemoveV2", opdef.Attrs{"Tin": tensor.Int64})
			run := func(n *kerneltest.Node, inputs ...tensor.Tensor) []tensor.Tensor {
				got, err := n.Run(append(out[:1:1], inputs...)...)
				if err != nil {
					t.Error(err)
				}
				return got
			}
			var wg sync.WaitGroup
			for w := range int64(4) {
				wg.Go(func() {
					for i := range int64(100) {
						k := w*50 + i
						run(insert, tensor.Vector(k, k+1), tensor.Vector(10*k, 10*(k+1)))
						got := run(find, tensor.Vector(k, k+2), tensor.Scalar[int64](-1))
						checkTens(t, tensor.Vector(k, k+2), got[0])
						pairs := run(read)
						run(remove, tensor.Vector(k))
						checkTens(t, pairs[0], pairs[1])
					}
				})
			}
			wg.Wait()
		})
	}
}

// checkTens checks that every value is ten times its key, or that the key is absent or a marker.
func checkTens(t *testing.T, keys, values tensor.Tensor) {
	v := tensor.Values[int64](&values)
	for i, k := range tensor.Values[int64](&keys) {
		if k >= 0 && v[i] != 10*k && v[i] != -1 {
			t.Errorf("key %d has value %d", k, v[i])
		}
	}
}

// TestReuseOfFreeBuckets updates a key that is probed after a deleted bucket. The key must not be
// duplicated.
func TestReuseOfFreeBuckets(t *testing.T) {
	l := layout{keyType: tensor.Int64, valueType: tensor.Int64}
	empty, deleted := tensor.Scalar[int64](-1), tensor.Scalar[int64](-2)
	d, err := newDenseOf[int64](nil, l, &empty, &deleted, 0.8, 8)
	if err != nil {
		t.Fatal(err)
	}
	// keys with equal hashes
	keys, values := tensor.Vector[int64](1, 9), tensor.Vector[int64](10, 90)
	first, second, changed := tensor.Vector[int64](1), tensor.Vector[int64](9), tensor.Vector[int64](91)
	for _, err := range []error{d.insert(t.Context(), nil, &keys, &values), d.remove(t.Context(), nil, &first), d.insert(t.Context(), nil, &second, &changed)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	out, none := tensor.Vector[int64](0, 0), tensor.Scalar[int64](-1)
	if err := d.find(t.Context(), &out, &keys, &none); err != nil {
		t.Fatal(err)
	}
	if got := tensor.Values[int64](&out); d.size() != 1 || got[0] != -1 || got[1] != 91 {
		t.Errorf("%d keys, values %v", d.size(), got)
	}
}

// TestImportOfFullBuckets imports buckets without free space. Operations must terminate.
func TestImportOfFullBuckets(t *testing.T) {
	l := layout{keyType: tensor.Int64, valueType: tensor.Int64}
	empty, deleted := tensor.Scalar[int64](-1), tensor.Scalar[int64](-2)
	d, err := newDense(nil, l, &empty, &deleted, 0.999, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int64{1, 3, 4, 5} {
		keys, _ := tensor.Zeros(tensor.Int64, tensor.Shape{n, 1})
		for i := range tensor.Values[int64](&keys) {
			tensor.Values[int64](&keys)[i] = int64(i)
		}
		if err := d.replace(t.Context(), nil, &keys, &keys); err != nil || d.size() != int(n) {
			t.Fatalf("import of %d: %v, size %d", n, err, d.size())
		}
		out, key, none := tensor.Vector[int64](0), tensor.Vector[int64](100), tensor.Scalar[int64](-1)
		if err := d.find(t.Context(), &out, &key, &none); err != nil || tensor.Values[int64](&out)[0] != -1 {
			t.Errorf("find among %d: %v, %v", n, out, err)
		}
		// may fail if the number of buckets is not a power of two
		_ = d.insert(t.Context(), nil, &key, &none)
	}
	keys, _ := tensor.Zeros(tensor.Int64, tensor.Shape{0, 1})
	if err := d.replace(t.Context(), nil, &keys, &keys); err == nil {
		t.Error("a table without buckets")
	}
}

// TestPrivateTable checks that a table without a shared name is deleted with its node.
func TestPrivateTable(t *testing.T) {
	env := kerneltest.NewEnv()
	n := must(t, env, "MutableHashTableV2", opdef.Attrs{"key_dtype": tensor.Int64, "value_dtype": tensor.Int64})
	out, err := n.Run()
	if err != nil {
		t.Fatal(err)
	}
	n.Close()
	if _, err := must(t, env, "LookupTableSizeV2", nil).Run(out[0]); err == nil {
		t.Error("the table outlives its node")
	}
	if _, err := kernel.LookupResource[*Table](env.Device.Resources, "", "node"); err == nil {
		t.Error("the table has the name of its node")
	}
}
