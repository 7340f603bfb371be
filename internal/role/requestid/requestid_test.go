package requestid_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/status"
)

func track(r *requestid.Recent, id int64) error { return r.Track(id, "RunGraph (Worker)", "") }

func TestNewIsNeverZeroAndDistinct(t *testing.T) {
	seen := map[int64]bool{}
	for range 1000 {
		id := requestid.New()
		if id == 0 || seen[id] {
			t.Fatalf("New() = %d", id)
		}
		seen[id] = true
	}
}

func TestZeroIsAlwaysNew(t *testing.T) {
	r := requestid.NewRecent(1, 1)
	for range 3 {
		if err := track(r, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRepeatedIsAborted(t *testing.T) {
	r := requestid.NewRecent(10, 1)
	for _, id := range []int64{7, -7} {
		if err := track(r, id); err != nil {
			t.Fatal(err)
		}
		err := r.Track(id, "RunStep (Master)", "session 1f")
		if want := "The same RunStep (Master) request was received twice. session 1f"; status.CodeOf(err) != status.Aborted || err.Error() != want {
			t.Errorf("got %v, want ABORTED %q", err, want)
		}
	}
}

// TestUnordered fills the memory and checks that the next identifier pushes out the oldest, and
// only it.
func TestUnordered(t *testing.T) {
	r := requestid.NewRecent(6, 1)
	ids := []int64{53754, 23351, 164101, 7476, 162432, 130761, 164102}
	for i, id := range ids[:6] {
		if err := track(r, id); err != nil {
			t.Fatal(err)
		}
		for _, old := range ids[:i+1] {
			if track(r, old) == nil {
				t.Errorf("%d is forgotten after %d", old, id)
			}
		}
	}
	if err := track(r, ids[6]); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[1:] {
		if track(r, id) == nil {
			t.Errorf("%d is forgotten", id)
		}
	}
	if err := track(r, ids[0]); err != nil {
		t.Errorf("the oldest is still remembered: %v", err)
	}
}

func TestOldestIsForgottenFirst(t *testing.T) {
	for _, tt := range []struct{ size, shards int }{{2, 1}, {3, 1}, {4, 1}, {5, 1}, {10, 3}, {11, 3}, {12, 4}, {100, 8}} {
		t.Run(fmt.Sprintf("%d ids in %d shards", tt.size, tt.shards), func(t *testing.T) {
			r := requestid.NewRecent(tt.size, tt.shards)
			kept := tt.size / tt.shards * tt.shards
			for i := range int64(100) {
				if err := track(r, i+1); err != nil {
					t.Fatal(err)
				}
				for old := max(1, i+2-int64(kept)); old <= i+1; old++ {
					if track(r, old) == nil {
						t.Fatalf("%d is forgotten after %d", old, i+1)
					}
				}
			}
			if err := track(r, 1); err != nil && kept < 100 {
				t.Errorf("1 is still remembered after 100 others: %v", err)
			}
		})
	}
}

func TestConcurrentRepeatsHaveOneWinner(t *testing.T) {
	r := requestid.NewRecent(1000, 4)
	var wg sync.WaitGroup
	won := make(chan int64, 1000)
	for range 4 {
		wg.Go(func() {
			for id := range int64(100) {
				if track(r, id+1) == nil {
					won <- id
				}
			}
		})
	}
	wg.Wait()
	if len(won) != 100 {
		t.Errorf("%d requests were new, want 100", len(won))
	}
}

func BenchmarkTrack(b *testing.B) {
	r := requestid.NewRecent(100000, 8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := track(r, requestid.New()); err != nil {
				b.Error(err)
			}
		}
	})
}
