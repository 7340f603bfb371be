package probe

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestLabels(t *testing.T) {
	for label, want := range map[string]string{"": "default", "overload_1": "overload_1", "overload_2": "overload_2"} {
		out := kerneltest.Run(t, "KernelLabel", opdef.Attrs{"_kernel": label})
		if got := tensor.Value[string](&out[0]); got != "My label is: "+want {
			t.Errorf("label %q: %q", label, got)
		}
	}
	if _, err := kerneltest.Try("KernelLabel", opdef.Attrs{"_kernel": "overload_3"}); err == nil {
		t.Error("a kernel for a label that none has")
	}
	if _, err := kerneltest.Try("KernelLabelRequired", nil, tensor.Vector[int32](1)); err == nil {
		t.Error("a kernel without a label")
	}
}

func TestStub(t *testing.T) {
	env := kerneltest.NewEnv()
	run := func(op string, attrs opdef.Attrs, in ...tensor.Tensor) ([]tensor.Tensor, error) {
		n, err := env.Make(op, attrs)
		if err != nil {
			t.Fatal(err)
		}
		return n.Run(in...)
	}
	handle, err := run("StubResourceHandleOp", opdef.Attrs{"container": "a", "shared_name": "b"})
	if err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		out, err := run("ResourceInitializedOp", nil, handle[0])
		if err != nil {
			t.Fatal(err)
		}
		return tensor.Value[bool](&out[0])
	}
	if _, err := run("ResourceUsingOp", nil, handle[0]); status.CodeOf(err) != status.NotFound || there() {
		t.Errorf("a resource that was not created: %v", err)
	}
	if _, err := run("ResourceCreateOp", nil, handle[0]); err != nil || !there() {
		t.Errorf("making it: %v", err)
	}
	if _, err := run("ResourceCreateOp", nil, handle[0]); status.CodeOf(err) != status.AlreadyExists {
		t.Errorf("making it again: %v", err)
	}
	if _, err := run("ResourceUsingOp", nil, handle[0]); err != nil {
		t.Errorf("using it: %v", err)
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := kerneltest.NewEnv()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		env.Step.Context = ctx
		for _, c := range []struct {
			seconds int32
			code    status.Code
			takes   time.Duration
		}{{10, status.OK, 10 * time.Second}, {100, status.Cancelled, 50 * time.Second}} {
			n, err := env.Make("SleepIdentityOp", opdef.Attrs{"T": tensor.Int32})
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = n.Run(tensor.Scalar(c.seconds), tensor.Scalar[int32](7))
			if status.CodeOf(err) != c.code || time.Since(start) != c.takes {
				t.Errorf("asleep for %v of %d s: %v", time.Since(start), c.seconds, err)
			}
		}
	})
}

func TestDeadline(t *testing.T) {
	if _, err := kerneltest.Try("GetDeadline", nil); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a step has a deadline: %v", err)
	}
}
