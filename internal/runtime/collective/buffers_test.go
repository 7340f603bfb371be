package collective

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestOfferWaitsUntilItIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Buffers
		offered := make(chan error, 1)
		go func() { offered <- b.Offer(t.Context(), "k", tensor.Scalar[float32](3)) }()
		synctest.Wait()
		select {
		case err := <-offered:
			t.Fatalf("the offer ended with %v before the tensor was taken", err)
		default:
		}
		got, err := b.Take(t.Context(), "k")
		if err != nil || tensor.Value[float32](&got) != 3 {
			t.Fatalf("got %v, %v", &got, err)
		}
		if err := <-offered; err != nil {
			t.Error(err)
		}
	})
}

func TestTakeWaitsForAnOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Buffers
		go func() {
			synctest.Wait()
			if err := b.Offer(t.Context(), "k", tensor.Scalar[float32](3)); err != nil {
				t.Error(err)
			}
		}()
		if got, err := b.Take(t.Context(), "k"); err != nil || tensor.Value[float32](&got) != 3 {
			t.Errorf("got %v, %v", &got, err)
		}
	})
}

func TestSecondOfferOrRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Buffers
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- b.Offer(ctx, "offered", tensor.Scalar[float32](3)) }()
		go func() {
			_, err := b.Take(ctx, "wanted")
			ended <- err
		}()
		synctest.Wait()
		err := b.Offer(t.Context(), "offered", tensor.Scalar[float32](4))
		wantError(t, err, status.Internal, "BufRendezvous::ProvideBuf already called for key offered")
		later := make(chan error)
		go func() {
			_, err := b.Take(ctx, "wanted")
			later <- err
		}()
		wantError(t, <-ended, status.Internal, "Second consumer arrived for key wanted")
		cancel()
		for _, c := range []chan error{ended, later} {
			wantError(t, <-c, status.Cancelled, "waiting for buffer")
		}
		if len(b.byKey) > 0 {
			t.Errorf("%d buffers are left", len(b.byKey))
		}
	})
}

// TestCancelledEntriesAreDropped cancels an offer and a request, and makes new ones before the
// waiting goroutines have noticed the cancellation.
func TestCancelledEntriesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			var b Buffers
			first, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 3)
			go func() {
				_, err := b.Take(first, "wanted")
				ended <- err
			}()
			go func() { ended <- b.Offer(first, "offered", tensor.Scalar[float32](1)) }()
			synctest.Wait()
			cancel()
			go func() { ended <- b.Offer(t.Context(), "wanted", tensor.Scalar[float32](2)) }()
			go func() { ended <- b.Offer(t.Context(), "offered", tensor.Scalar[float32](2)) }()
			for _, key := range []string{"wanted", "offered"} {
				if got, err := b.Take(t.Context(), key); err != nil || tensor.Value[float32](&got) != 2 {
					t.Errorf("%s: got %v, %v; want the tensor that was offered last", key, &got, err)
				}
			}
			taken := 0
			for range 4 {
				if err := <-ended; err == nil {
					taken++
				} else {
					wantError(t, err, status.Cancelled, "waiting for buffer")
				}
			}
			if taken != 2 || len(b.byKey) > 0 {
				t.Errorf("%d were taken, %d are left", taken, len(b.byKey))
			}
		}
	})
}

func TestAbortEndsAllWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Buffers
		ended := make(chan error, 2)
		go func() { ended <- b.Offer(t.Context(), "offered", tensor.Scalar[float32](3)) }()
		go func() {
			_, err := b.Take(t.Context(), "wanted")
			ended <- err
		}()
		synctest.Wait()
		b.Abort(status.Abortedf("over"))
		b.Abort(status.Internalf("too late"))
		for range 2 {
			wantError(t, <-ended, status.Aborted, "over")
		}
		_, err := b.Take(t.Context(), "later")
		wantError(t, err, status.Aborted, "over")
	})
}

func wantError(t *testing.T, err error, code status.Code, text string) {
	t.Helper()
	if status.CodeOf(err) != code || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v: %v, want %v with %q in it", status.CodeOf(err), err, code, text)
	}
}

// TestTreesReachEveryDevice follows all trees of groups of several shapes and counts how often each
// device receives.
func TestTreesReachEveryDevice(t *testing.T) {
	for tasks := 1; tasks <= 4; tasks++ {
		for devices := 1; devices <= 5; devices++ {
			for source := range tasks * devices {
				checkTrees(t, tasks, devices, source)
			}
		}
	}
}

func checkTrees(t *testing.T, tasks, devices, source int) {
	t.Helper()
	g := groupOf(tasks, devices)
	received, expected := map[int]int{}, map[int]int{}
	for rank := range g.Members {
		x := &execution{group: g, rank: rank, source: source}
		for _, tr := range x.trees() {
			if tr.at != tr.source {
				expected[rank]++
			}
			for _, to := range tr.children() {
				received[tr.ranks[to]]++
				child := tree{ranks: tr.ranks, at: to, source: tr.source}
				if child.parent() != tr.at {
					t.Errorf("%dx%d from %d: position %d sends to %d, which receives from %d", tasks, devices, source, tr.at, to, child.parent())
				}
			}
		}
	}
	for rank := range g.Members {
		want := 1
		if rank == source {
			want = 0
		}
		if received[rank] != want || expected[rank] != want {
			t.Errorf("%dx%d from %d: device %d is sent %d and receives %d", tasks, devices, source, rank, received[rank], expected[rank])
		}
	}
}

// TestAlignedChunk compares with the piece sizes that TensorFlow computes for float and double
// tensors.
func TestAlignedChunk(t *testing.T) {
	for _, tt := range []struct{ elem, n, count, want int }{
		{4, 8, 2, 16}, {4, 1, 2, 16}, {4, 64, 2, 48}, {4, 100, 3, 48}, {8, 100, 3, 40}, {2, 1000, 3, 352},
	} {
		if got := alignedChunk(tt.elem, tt.n, tt.count); got != tt.want {
			t.Errorf("%d elements of %d bytes in %d pieces: %d each, want %d", tt.n, tt.elem, tt.count, got, tt.want)
		}
	}
}

func TestOrderOfDevices(t *testing.T) {
	var got []string
	devices := []Device{
		{Name: "/job:worker/replica:0/task:2/device:CPU:0"}, {Name: "/job:worker/replica:0/task:10/device:CPU:10"},
		{Name: "/job:worker/replica:0/task:10/device:CPU:2"}, {Name: "/job:ps/replica:0/task:3/device:CPU:0"},
	}
	sortDevices(devices)
	for _, d := range devices {
		got = append(got, strings.TrimPrefix(d.Name, "/job:"))
	}
	const want = "ps/replica:0/task:3/device:CPU:0 worker/replica:0/task:10/device:CPU:2 worker/replica:0/task:10/device:CPU:10 " +
		"worker/replica:0/task:2/device:CPU:0"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v", got)
	}
}

func TestSequences(t *testing.T) {
	ctx := t.Context()
	leader, follower := NewSequences(), NewSequences()
	ask := func(context.Context) (int64, error) { return leader.Peek(7) }
	for step := range 5 {
		a, errA := leader.Acquire(ctx, 7, nil)
		b, errB := follower.Acquire(ctx, 7, ask)
		if errA != nil || errB != nil || a != b || a>>57 != 0 {
			t.Fatalf("step %d: %d, %v and %d, %v", step, a, errA, b, errB)
		}
		ok := step%2 == 0
		leader.Release(7, ok)
		follower.Release(7, ok)
		if next, err := leader.Peek(7); err != nil || (next != a) != ok {
			t.Errorf("step %d: next is %d after %d, %v", step, next, a, err)
		}
	}
	for range 2 { // the second time for a master whose step has failed
		a, _ := leader.Acquire(ctx, 7, nil)
		if b, err := follower.Acquire(ctx, 7, ask); err != nil || a != b {
			t.Errorf("got %d and %d, %v", a, b, err)
		}
		leader.Release(7, true)
		follower.Release(7, false)
	}
	if _, err := leader.Acquire(ctx, 7, nil); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err := leader.Acquire(short, 7, nil)
	wantError(t, err, status.Cancelled, "waiting for another step")
}

// TestForgottenSequence restarts the leader between two sessions of a follower.
func TestForgottenSequence(t *testing.T) {
	ctx := t.Context()
	leader, follower := NewSequences(), NewSequences()
	ask := func(context.Context) (int64, error) { return leader.Peek(7) }
	for range 3 {
		a, errA := leader.Acquire(ctx, 7, nil)
		b, errB := follower.Acquire(ctx, 7, ask)
		if errA != nil || errB != nil || a != b {
			t.Fatalf("got %d, %v and %d, %v", a, errA, b, errB)
		}
		follower.Forget(7) // a step runs, so this has no effect
		leader.Release(7, true)
		follower.Release(7, true)
		if next, err := follower.Acquire(ctx, 7, nil); err != nil || next != a+1 {
			t.Errorf("got %d, %v; want %d", next, err, a+1)
		}
		follower.Release(7, false)
		follower.Forget(7)
		leader = NewSequences()
	}
	follower.Forget(8) // not known
}

// TestSharedBuffers checks that the entries that one client leaves in shared buffers do not stop
// the others.
func TestSharedBuffers(t *testing.T) {
	for _, shared := range []bool{false, true} {
		b := Buffers{Shared: shared}
		for i := range maxBuffers {
			if _, err := b.offer(t.Context(), strconv.Itoa(i), tensor.Scalar[float32](3)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.offer(t.Context(), "k", tensor.Scalar[float32](3)); (err == nil) != shared {
			t.Errorf("shared %t: got %v", shared, err)
		}
	}
}
