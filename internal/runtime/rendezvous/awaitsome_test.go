package rendezvous

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// indexes returns the indexes of the keys of values, sorted.
func indexes(values []Value) (out []int) {
	for _, v := range values {
		out = append(out, v.Index)
	}
	slices.Sort(out)
	return out
}

func TestAwaitSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		keys := []string{"a", "b", "c", "d"}
		send := func(key string, v float32) {
			if err := r.SendText(key, tensor.Scalar(v), key == "d"); err != nil {
				t.Error(err)
			}
		}
		send("c", 2)
		send("a", 0)
		values, err := r.AwaitSome(t.Context(), keys)
		if got := indexes(values); err != nil || !slices.Equal(got, []int{0, 2}) {
			t.Fatalf("got %v, %v", got, err)
		}
		for _, v := range values {
			if tensor.Value[float32](&v.Tensor) != float32(v.Index) || v.Dead {
				t.Errorf("got %v", v)
			}
		}
		if n := r.Parked(); n != 0 {
			t.Errorf("%d consumers still wait", n)
		}
		go func() {
			synctest.Wait()
			send("d", 3)
		}()
		values, err = r.AwaitSome(t.Context(), keys)
		if err != nil || !slices.Equal(indexes(values), []int{3}) || !values[0].Dead {
			t.Errorf("got %v, %v", values, err)
		}
	})
}

func TestAwaitSomeIsCancelled(t *testing.T) {
	r := New()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.AwaitSome(ctx, []string{"a", "b"}); status.CodeOf(err) != status.Cancelled || r.Parked() != 0 {
		t.Errorf("got %v; %d wait", err, r.Parked())
	}
	why := errors.New("why")
	r.Abort(why)
	if _, err := r.AwaitSome(t.Context(), []string{"a", "b"}); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

// TestAwaitSomeOfMany checks that every value is received once, in any order of producers and
// consumers.
func TestAwaitSomeOfMany(t *testing.T) {
	const n = 200
	r := New()
	keys := make([]string, n)
	for i := range keys {
		keys[i] = string(rune('a' + i))
	}
	var wg sync.WaitGroup
	for part := range 4 {
		wg.Go(func() {
			for i := part; i < n; i += 4 {
				if err := r.SendText(keys[i], tensor.Scalar(float32(i)), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	left := slices.Clone(keys)
	for len(left) > 0 {
		values, err := r.AwaitSome(t.Context(), left)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			if want := keys[int(tensor.Value[float32](&v.Tensor))]; left[v.Index] != want {
				t.Errorf("the index is that of key %q, the value that of key %q", left[v.Index], want)
			}
			left[v.Index] = ""
		}
		left = slices.DeleteFunc(left, func(key string) bool { return key == "" })
	}
	wg.Wait()
	if r.Parked() != 0 {
		t.Errorf("%d values are left", r.Parked())
	}
}
