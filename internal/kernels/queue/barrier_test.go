package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// taken is the result of a take.
type taken struct {
	keys []string
	err  error
}

// startTake starts taking n elements of a barrier.
func startTake(ctx context.Context, b *Barrier, n int, small bool) <-chan taken {
	ended := make(chan taken, 2) // room to detect an operation that completes twice
	b.take(ctx, n, small, func(elems []element, err error) {
		var keys []string
		for _, e := range elems {
			keys = append(keys, tensor.Value[string](&e[1]))
		}
		ended <- taken{keys, err}
	})
	return ended
}

func newIntBarrier(components int) *Barrier {
	types, shapes := make([]tensor.DType, components), make([]tensor.PartialShape, components)
	for i := range types {
		types[i], shapes[i] = tensor.Int32, tensor.MakePartial()
	}
	return newBarrier("b", types, shapes)
}

func mustInsert(t *testing.T, b *Barrier, component int, keys ...string) {
	t.Helper()
	values, err := tensor.Zeros(tensor.Int32, tensor.Shape{int64(len(keys))})
	if err == nil {
		err = b.insert(nil, keys, component, &values)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestTakersWaitForCompleteElements(t *testing.T) {
	b := newIntBarrier(2)
	first, second := startTake(t.Context(), b, 2, false), startTake(t.Context(), b, 1, false)
	mustInsert(t, b, 0, "a", "b", "c")
	mustInsert(t, b, 1, "c")
	if len(first)+len(second) != 0 {
		t.Fatal("a take of two ended with one, or was overtaken")
	}
	mustInsert(t, b, 1, "b", "a")
	if got := <-first; got.err != nil || !slices.Equal(got.keys, []string{"c", "b"}) {
		t.Errorf("the first take returned %v", got)
	}
	if got := <-second; got.err != nil || !slices.Equal(got.keys, []string{"a"}) {
		t.Errorf("the second take returned %v", got)
	}
}

func TestCloseEndsTakesThatCannotSucceed(t *testing.T) {
	for _, tt := range []struct {
		n         int
		small     bool
		cancel    bool
		want      string // error after the close and after the last component
		afterward bool   // whether the take completes only after the last component
	}{
		{n: 1, want: "[a]"},
		{n: 3, want: "[a b c]", afterward: true},
		{n: 3, small: true, want: "[a b c]", afterward: true},
		{n: 5, small: true, want: "[a b c]", afterward: true},
		{n: 5, small: true, cancel: true, want: "[a]"},
		{n: 4, want: "PriorityQueue 'b_queue' is closed and has insufficient elements (requested 4, current size 3)"},
		{n: 2, cancel: true, want: "PriorityQueue 'b_queue' is closed and has insufficient elements (requested 2, current size 1)"},
	} {
		b := newIntBarrier(2)
		mustInsert(t, b, 0, "a", "b", "c")
		take := startTake(t.Context(), b, tt.n, tt.small)
		mustInsert(t, b, 1, "a")
		if err := b.close(tt.cancel); err != nil {
			t.Fatal(err)
		}
		if tt.afterward != (len(take) == 0) {
			t.Errorf("%+v: %d takes have ended", tt, len(take))
		}
		if !tt.cancel {
			mustInsert(t, b, 1, "b", "c")
		}
		got := <-take
		have := fmt.Sprint(got.keys)
		if got.err != nil {
			have = got.err.Error()
		}
		if have != tt.want {
			t.Errorf("%+v: got %s", tt, have)
		}
	}
}

func TestCancelledTakeLeavesElements(t *testing.T) {
	b := newIntBarrier(1)
	ctx, cancel := context.WithCancel(t.Context())
	take := startTake(ctx, b, 2, false)
	mustInsert(t, b, 0, "a")
	cancel()
	if got := <-take; status.CodeOf(got.err) != status.Cancelled {
		t.Errorf("cancelled take returned %v", got)
	}
	if b.readySize() != 1 {
		t.Errorf("%d elements are left", b.readySize())
	}
}

// TestBarrierRace inserts two components of many keys and takes the elements, all in different
// goroutines.
func TestBarrierRace(t *testing.T) {
	const keys, batch = 240, 3
	b := newIntBarrier(2)
	var wg sync.WaitGroup
	for component := range 2 {
		wg.Go(func() {
			for i := range keys {
				// a different order for each component; 7 and 240 are coprime
				key := fmt.Sprint((i*(1+component*6) + component) % keys)
				mustInsert(t, b, component, key)
			}
		})
	}
	results := make(chan taken, keys)
	for range 4 {
		wg.Go(func() {
			for range keys / batch / 4 {
				results <- <-startTake(t.Context(), b, batch, false)
			}
		})
	}
	wg.Wait()
	close(results)
	seen := map[string]bool{}
	for got := range results {
		for _, k := range got.keys {
			seen[k] = true
		}
	}
	if len(seen) != keys || b.readySize() != 0 || b.incompleteSize() != 0 {
		t.Errorf("%d keys came out, %d and %d are left", len(seen), b.readySize(), b.incompleteSize())
	}
}

// An error names the beginning of a long key.
func TestTextOfKeys(t *testing.T) {
	b := newBarrier("b", []tensor.DType{tensor.Int32}, nil)
	key, values := strings.Repeat("k", 1<<20), tensor.Vector[int32](1)
	b.types = append(b.types, tensor.Int32) // so that the element stays incomplete
	if err := b.insert(nil, []string{key}, 0, &values); err != nil {
		t.Fatal(err)
	}
	if err := b.insert(nil, []string{key}, 0, &values); err == nil || len(err.Error()) > 2000 {
		t.Error("the second value of a key has no error, or a long one")
	}
}
