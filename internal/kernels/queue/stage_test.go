package queue

import (
	"context"
	"sync"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func intElement(v int32) element { return element{tensor.Scalar(v)} }

// ended returns a channel and a function that sends the result of an operation to it.
func ended() (chan error, func(error)) {
	c := make(chan error, 2) // room to detect an operation that completes twice
	return c, func(err error) { c <- err }
}

func TestStagingAreaWaits(t *testing.T) {
	a := newArea(room{capacity: 2})
	got := make(chan element, 4)
	take := func(e element, err error) {
		if err != nil {
			t.Error(err)
		}
		got <- e
	}
	a.take(t.Context(), take)
	a.peek(t.Context(), 1, take)
	var puts []chan error
	for i := range int32(4) {
		c, done := ended()
		a.put(t.Context(), intElement(i), done)
		puts = append(puts, c)
	}
	// the first element was taken at once; 2 is then second in line
	for i, want := range []int32{0, 2} {
		if e := <-got; tensor.Value[int32](&e[0]) != want {
			t.Errorf("%d: got %v, want %d", i, e[0], want)
		}
	}
	if len(puts[2]) != 1 || len(puts[3]) != 0 || a.size() != 2 {
		t.Fatalf("%d elements in an area of two", a.size())
	}
	a.clear()
	if err := <-puts[3]; err != nil || a.size() != 1 {
		t.Errorf("after the area was cleared: %v, size %d", err, a.size())
	}
	ctx, cancel := context.WithCancel(t.Context())
	blocked, done := ended()
	a.peek(ctx, 5, func(_ element, err error) { done(err) })
	cancel()
	if err := <-blocked; status.CodeOf(err) != status.Cancelled {
		t.Errorf("a cancelled peek ended with %v", err)
	}
}

func TestStagingMapWaits(t *testing.T) {
	m := &StagingMap{}
	m.init(room{limit: 12})
	var order []int64
	take := func(w wanted) {
		m.take(t.Context(), w, func(key int64, e element, err error) {
			if err != nil {
				t.Error(err)
			}
			order = append(order, key)
			e.release()
		})
	}
	take(wanted{key: 7, indices: []int32{0, 1}})
	take(wanted{anyKey: true, indices: []int32{1}})
	last, done := ended()
	for _, p := range []struct {
		key     int64
		indices []int32
	}{{7, []int32{0}}, {5, []int32{0, 1}}, {7, []int32{1}}, {9, []int32{0, 1}}} {
		values := element{tensor.Scalar(int32(p.key)), tensor.Scalar(int32(p.key))}
		m.put(t.Context(), p.key, p.indices, values[:len(p.indices)], 2, func(err error) {
			if p.key == 9 {
				done(err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	if len(order) != 2 || order[0] != 5 || order[1] != 7 {
		t.Errorf("elements left in the order %v, want 5 and 7", order)
	}
	if err := <-last; err != nil { // 4 bytes of element 5 remain
		t.Error(err)
	}
	blocked, done := ended()
	m.put(t.Context(), 11, []int32{0}, intElement(1), 2, done)
	if len(blocked) != 0 {
		t.Fatal("16 bytes in a map of 12")
	}
	take(wanted{key: 5, indices: []int32{0}})
	if err := <-blocked; err != nil {
		t.Error(err)
	}
	if m.size() != 1 || m.incompleteSize() != 1 || m.used != 12 {
		t.Errorf("%d and %d elements, %d bytes", m.size(), m.incompleteSize(), m.used)
	}
}

// TestStagingRace passes numbers through a small area and checks their count.
func TestStagingRace(t *testing.T) {
	a := newArea(room{capacity: 3})
	const each = 200
	var wg sync.WaitGroup
	sums := make(chan int, 4)
	for range 4 {
		wg.Go(func() {
			for i := range each {
				c, done := ended()
				a.put(t.Context(), intElement(int32(i)), done)
				if err := <-c; err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			sum := 0
			for range each {
				got := make(chan element, 2)
				a.take(t.Context(), func(e element, _ error) { got <- e })
				e := <-got
				sum += int(tensor.Value[int32](&e[0]))
			}
			sums <- sum
		})
	}
	wg.Wait()
	total := 0
	for range 4 {
		total += <-sums
	}
	if want := 4 * each * (each - 1) / 2; total != want || a.size() != 0 || a.used != 0 {
		t.Errorf("sum %d, want %d; %d elements and %d bytes left", total, want, a.size(), a.used)
	}
}
