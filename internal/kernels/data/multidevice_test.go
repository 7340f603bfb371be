package data

import (
	"context"
	"testing"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// deal creates an iterator for three devices.
func (b *bench) deal() tensor.Tensor {
	b.Helper()
	attrs := b.attrs()
	attrs["devices"] = []string{"/cpu:0", "/cpu:1", "/cpu:2"}
	it, err := b.run("it", "AnonymousMultiDeviceIterator", attrs)
	if err != nil {
		b.Fatal(err)
	}
	return it[0]
}

func (b *bench) begin(it, d tensor.Tensor, maxBuffered int64) tensor.Tensor {
	b.Helper()
	id, err := b.run("init", "MultiDeviceIteratorInit", nil, d, it, num(maxBuffered))
	if err != nil {
		b.Fatal(err)
	}
	return id[0]
}

func (b *bench) shard(it tensor.Tensor, shard int32, id tensor.Tensor) (int64, error) {
	b.Helper()
	out, err := b.run("next", "MultiDeviceIteratorGetNextFromShard", b.attrs(), it, tensor.Scalar(shard), id)
	if err != nil {
		return 0, err
	}
	return tensor.Value[int64](&out[0]), nil
}

func TestMultiDeviceIterator(t *testing.T) {
	for _, maxBuffered := range []int64{0, 1, 5} {
		b := newBench(t)
		it := b.deal()
		id := b.begin(it, b.count(0, 7), maxBuffered)
		type answer struct {
			v   int64
			err error
		}
		// The second device requests first and still receives the second element.
		second := make(chan answer)
		go func() {
			v, err := b.shard(it, 1, id)
			second <- answer{v, err}
		}()
		if maxBuffered > 0 {
			if got := <-second; got != (answer{1, nil}) {
				t.Errorf("second device: %v", got)
			}
		}
		if v, err := b.shard(it, 0, id); v != 0 || err != nil {
			t.Errorf("first device: %d, %v", v, err)
		}
		if maxBuffered == 0 {
			if got := <-second; got != (answer{1, nil}) {
				t.Errorf("second device: %v", got)
			}
		}
		for _, c := range []struct {
			shard int32
			want  int64
			code  status.Code
		}{{2, 2, 0}, {0, 3, 0}, {1, 4, 0}, {2, 5, 0}, {0, 6, 0}, {1, 0, status.OutOfRange}, {0, 0, status.OutOfRange}, {2, 0, status.OutOfRange}} {
			if v, err := b.shard(it, c.shard, id); v != c.want || status.CodeOf(err) != c.code {
				t.Errorf("device %d: %d, %v", c.shard, v, err)
			}
		}
		if _, err := b.shard(it, 3, id); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("invalid device: %v", err)
		}

		next := b.begin(it, b.count(5, 7), maxBuffered)
		if _, err := b.shard(it, 0, id); status.CodeOf(err) != status.InvalidArgument || err.Error() != "Invalid incarnation id. Provided: 1; Expected: 2" {
			t.Errorf("an old incarnation: %v", err)
		}
		if v, err := b.shard(it, 0, next); v != 5 || err != nil {
			t.Errorf("after reinitialization: %d, %v", v, err)
		}
		if _, err := b.run("delete", "DeleteMultiDeviceIterator", opdef.Attrs{"N": int64(0)}, it, tensor.Scalar(tensor.VariantValue{})); err != nil {
			t.Error(err)
		}
		if _, err := b.shard(it, 1, next); status.CodeOf(err) != status.Cancelled {
			t.Errorf("after deletion: %v", err)
		}
	}
}

// TestCancelledShard cancels a request. Its element goes to the next request.
func TestCancelledShard(t *testing.T) {
	b := newBench(t)
	it := b.deal()
	id := b.begin(it, b.count(0, 3), 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	whole := b.env.Step.Context
	b.env.Step.Context = ctx
	v, err := b.shard(it, 1, id) // an element may be ready
	b.env.Step.Context = whole
	if err != nil && status.CodeOf(err) != status.Cancelled {
		t.Fatal(err)
	}
	got, later := b.shard(it, 1, id)
	if err == nil && (v != 1 || status.CodeOf(later) != status.OutOfRange) || err != nil && (got != 1 || later != nil) {
		t.Errorf("%d, %v and then %d, %v", v, err, got, later)
	}
}

func TestMultiDeviceIteratorHandles(t *testing.T) {
	b := newBench(t)
	attrs := b.attrs()
	attrs["devices"], attrs["shared_name"], attrs["container"] = []string{"/cpu:0"}, "dealer", ""
	it, err := b.run("it", "MultiDeviceIterator", attrs)
	if err != nil {
		t.Fatal(err)
	}
	id := b.begin(it[0], b.count(0, 1), 1)
	name, err := b.run("name", "MultiDeviceIteratorToStringHandle", nil, it[0])
	if err != nil {
		t.Fatal(err)
	}
	back, err := b.run("back", "MultiDeviceIteratorFromStringHandle", b.attrs(), name[0])
	if err != nil {
		t.Fatal(err)
	}
	if v, err := b.shard(back[0], 0, id); v != 0 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	other := opdef.Attrs{"output_types": []tensor.DType{tensor.Bool}}
	if _, err := b.run("other", "MultiDeviceIteratorFromStringHandle", other, name[0]); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("with another type: %v", err)
	}
}
