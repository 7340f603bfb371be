package queue

import (
	"context"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	manyComponents = 1 << 20
	memoryLimit    = 160 << 20
)

// limited limits the memory of the process during a test.
func limited(t *testing.T) {
	before := membudget.Limit()
	membudget.SetLimit(memoryLimit)
	t.Cleanup(func() { membudget.SetLimit(before) })
}

// wantExhausted calls add until it fails, and fails the test unless that is for lack of memory.
func wantExhausted(t *testing.T, most int, add func(i int) error) {
	t.Helper()
	var err error
	for i := 0; i < most && err == nil; i++ {
		err = guard.Call("a test", func() error { return add(i) })
	}
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("the error is %v", err)
	}
}

// An attribute says how many components an element of a staging map or a barrier has.
func TestManyComponents(t *testing.T) {
	limited(t)
	t.Run("map", func(t *testing.T) {
		var m UnorderedMap
		m.init(room{})
		wantExhausted(t, 10, func(i int) (err error) {
			m.put(context.Background(), int64(i), []int32{0}, intElement(1), manyComponents, func(failure error) { err = failure })
			return err
		})
	})
	t.Run("barrier", func(t *testing.T) {
		b := newIntBarrier(manyComponents)
		values, err := tensor.Zeros(tensor.Int32, tensor.Shape{1})
		if err != nil {
			t.Fatal(err)
		}
		wantExhausted(t, 10, func(i int) error { return b.insert(nil, []string{string(rune('a' + i))}, 0, &values) })
	})
}

// Elements that share their tensors take memory too.
func TestElementsWithSharedTensors(t *testing.T) {
	const most = 400
	limited(t)
	shared := slices.Repeat(intElement(1), 10_000)
	copied := func() element { return slices.Clone(shared) }
	t.Run("queue", func(t *testing.T) {
		q := newQueue("q", fifo, spec{types: slices.Repeat([]tensor.DType{tensor.Int32}, len(shared)), capacity: unbounded})
		wantExhausted(t, most, func(int) (err error) {
			q.enqueue(context.Background(), []element{copied()}, func(failure error) { err = failure })
			return err
		})
	})
	t.Run("stage", func(t *testing.T) {
		a := newArea(room{})
		wantExhausted(t, most, func(int) (err error) {
			a.put(context.Background(), copied(), func(failure error) { err = failure })
			return err
		})
	})
}
