package table

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestIndex compares an index with a Go map during random changes.
func TestIndex(t *testing.T) {
	for _, spread := range []int64{4, 300, 1 << 40} {
		r := rand.New(rand.NewPCG(1, uint64(spread)))
		x, err := newIndex(tensor.Int64, membudget.NewHolding())
		if err != nil {
			t.Fatal(err)
		}
		want := map[int64]int64{} // number by key
		var byNumber []int64
		for range 3000 {
			keys := tensor.Vector(r.Int64N(spread), r.Int64N(spread), r.Int64N(spread))
			if r.IntN(5) < 3 {
				numbers := make([]int64, 3)
				if err := x.add(t.Context(), nil, &keys, numbers); err != nil {
					t.Fatal(err)
				}
				for i, k := range tensor.Values[int64](&keys) {
					if _, ok := want[k]; !ok {
						want[k] = int64(len(byNumber))
						byNumber = append(byNumber, k)
					}
					if numbers[i] != want[k] {
						t.Fatalf("key %d has number %d, want %d", k, numbers[i], want[k])
					}
				}
				continue
			}
			if err := x.remove(t.Context(), nil, &keys, func(int) {}); err != nil {
				t.Fatal(err)
			}
			for _, k := range tensor.Values[int64](&keys) {
				if n, ok := want[k]; ok {
					last := byNumber[len(byNumber)-1]
					want[last], byNumber[n] = n, last
					byNumber = byNumber[:len(byNumber)-1]
					delete(want, k)
				}
			}
		}
		got, err := x.export()
		if err != nil || x.len() != len(byNumber) || fmt.Sprint(tensor.Values[int64](&got)) != fmt.Sprint(byNumber) {
			t.Errorf("keys below %d: %d keys of %d, %v", spread, x.len(), len(byNumber), err)
		}
	}
}

// numberedKeys returns n different keys.
func numberedKeys(first, n int, dtype tensor.DType) tensor.Tensor {
	if dtype == tensor.Int64 {
		keys := make([]int64, n)
		for i := range keys {
			keys[i] = int64(first + i)
		}
		return tensor.Vector(keys...)
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = strconv.Itoa(first + i)
	}
	return tensor.Vector(keys...)
}

// TestAccount checks that a table pays for what it holds, fails unchanged when it may not grow, and
// gives back what was removed.
func TestAccount(t *testing.T) {
	const batch = 1 << 13
	for _, dtype := range []tensor.DType{tensor.Int64, tensor.String} {
		tenant := membudget.NewAccount(nil, "tenant", "--max-tenant-memory", 8<<20, nil)
		step := membudget.NewAccount(tenant, "step", "--max-step-memory", 0, nil)
		m, err := newMutable(layout{keyType: dtype, valueType: dtype})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for ; err == nil && n < 1000; n++ {
			keys := numberedKeys(n*batch, batch, dtype)
			err = m.insert(t.Context(), step, &keys, &keys)
		}
		n--
		if status.CodeOf(err) != status.ResourceExhausted || n == 0 {
			t.Fatalf("%v: %d batches, %v", dtype, n, err)
		}
		if m.size() != n*batch || m.values.n != n*batch || tenant.Used() < int64(16*n*batch) {
			t.Errorf("%v: %d keys after %d batches, %d bytes are charged", dtype, m.size(), n, tenant.Used())
		}
		out, keys := numberedKeys(0, n*batch, dtype), numberedKeys(0, n*batch, dtype)
		none := tensor.Scalar[int64](-1)
		if dtype == tensor.String {
			none = tensor.Scalar("none")
		}
		if err := m.find(t.Context(), &out, &keys, &none); err != nil || fmt.Sprint(out.Go()) != fmt.Sprint(keys.Go()) {
			t.Errorf("%v: entries were lost: %v", dtype, err)
		}
		if err := m.remove(t.Context(), step, &keys); err != nil {
			t.Fatal(err)
		}
		if used := left(tenant, 1<<18); m.size() != 0 || used > 1<<18 {
			t.Errorf("%v: %d keys are left, for which %d bytes are charged", dtype, m.size(), used)
		}
		m.release()
		if used := left(tenant, 0); used != 0 {
			t.Errorf("%v: %d bytes are charged for nothing", dtype, used)
		}
	}
}

// TestAccountOfImport imports buckets with text into a dense table, which pays for it.
func TestAccountOfImport(t *testing.T) {
	tenant := membudget.NewAccount(nil, "tenant", "--max-tenant-memory", 1<<20, nil)
	step := membudget.NewAccount(tenant, "step", "--max-step-memory", 0, nil)
	empty, deleted := tensor.Scalar("e"), tensor.Scalar("d")
	d, err := newDense(nil, layout{keyType: tensor.String, valueType: tensor.Int64}, &empty, &deleted, 0.8, 4)
	if err != nil {
		t.Fatal(err)
	}
	values, err := tensor.Zeros(tensor.Int64, tensor.Shape{4, 1})
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int]status.Code{1 << 10: status.OK, 1 << 21: status.ResourceExhausted} {
		keys, err := tensor.FromSlice(tensor.Shape{4, 1}, []string{"e", strings.Repeat("k", size), "e", "d"})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.replace(t.Context(), step, &keys, &values); status.CodeOf(err) != want || want == status.OK && tenant.Used() != int64(size) {
			t.Errorf("%d bytes: %v, %d bytes are charged", size, err, tenant.Used())
		}
	}
	d.close()
	if used := tenant.Used(); used != 0 {
		t.Errorf("%d bytes are charged for nothing", used)
	}
}

// left returns what is charged, after garbage collections if it is too much. A tensor of strings is
// charged until it is collected.
func left(a *membudget.Account, most int64) int64 {
	for range 100 {
		if a.Used() <= most {
			break
		}
		runtime.GC()
	}
	return a.Used()
}

// An exported tensor of strings does not change with the table.
func TestExportOfStrings(t *testing.T) {
	m, err := newMutable(layout{keyType: tensor.String, valueType: tensor.String})
	if err != nil {
		t.Fatal(err)
	}
	keys, values, other := tensor.Vector("a", "b"), tensor.Vector("1", "2"), tensor.Vector("3", "4")
	if err := m.insert(t.Context(), nil, &keys, &values); err != nil {
		t.Fatal(err)
	}
	_, got, err := m.export()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.insert(t.Context(), nil, &keys, &other); err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprint(got.Go()); s != "[1 2]" {
		t.Errorf("the exported values are %s", s)
	}
}
