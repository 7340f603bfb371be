package kernel_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestWritable writes to a value alone, to one that others hold, and to one whose copy is more than
// the step may use.
func TestWritable(t *testing.T) {
	a := membudget.NewAccount(nil, "step", "--max-step-memory", 3<<10, nil)
	ctx := &kernel.Context{Step: &kernel.Step{Account: a}}
	v, err := tensor.Zeros(tensor.Float32, tensor.Shape{256})
	if err != nil {
		t.Fatal(err)
	}
	if own, err := ctx.Writable(&v); err != nil || own != &v || a.Used() != 0 {
		t.Errorf("a value without other holders: error %v, %d bytes are charged", err, a.Used())
	}
	held := v.Retain()
	if _, err := ctx.Writable(&v); err != nil || a.Used() < 1<<10 {
		t.Errorf("a value with another holder: error %v, %d bytes are charged", err, a.Used())
	}
	tensor.Values[float32](&v)[0] = 1
	if tensor.Values[float32](&held)[0] != 0 {
		t.Error("the other holder sees the write")
	}
	held.Release()
	v.Release()
	if a.Used() != 0 {
		t.Errorf("%d bytes stay charged", a.Used())
	}

	large, err := tensor.Zeros(tensor.Float32, tensor.Shape{1024})
	if err != nil {
		t.Fatal(err)
	}
	held = large.Retain()
	_, err = ctx.Writable(&large)
	if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "--max-step-memory") {
		t.Errorf("a copy that is too large: got %v", err)
	}
	if !large.Initialized() || a.Used() != 0 {
		t.Errorf("after the error: initialized %v, %d bytes are charged", large.Initialized(), a.Used())
	}
	if own, err := (&kernel.Context{}).Writable(&large); err != nil || !own.Exclusive() {
		t.Errorf("without a step: error %v", err)
	}
	held.Release()
	large.Release()
}
