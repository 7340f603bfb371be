package executor_test

import (
	"context"
	"sync"
	"time"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// registerOps registers the operations of the tests.
func registerOps() {
	known := func(name string, in, out []string, attrs ...string) {
		kernel.Register(kernel.Op{Def: opdef.Def{Name: name, Doc: "-", In: in, Out: out, Attrs: attrs, Shape: opdef.UnknownShape}})
	}
	known("Const", nil, []string{"output: dtype"}, "value: tensor", "dtype: type")
	known("Identity", []string{"input: T"}, []string{"output: T"}, "T: type")
	known("_Arg", nil, []string{"output: T"}, "T: type", "index: int >= 0")
	known("_Retval", []string{"input: T"}, nil, "T: type", "index: int >= 0")

	register := func(name string, in, out, attrs []string, k kernel.New) {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: "-", In: in, Out: out, Attrs: attrs, Shape: opdef.UnknownShape,
				AllowsUninitialized: name == "AssignRef", Distributed: name == "FailDistributed",
			},
			Kernels: kernel.Any(k),
		})
	}
	two, one := []string{"x: int64", "y: int64"}, []string{"x: int64"}
	number, truth := []string{"z: int64"}, []string{"z: bool"}
	failing := []string{"code: int = 3", "message: string = 'failed'"}
	register("Add2", two, number, nil, binary(func(x, y int64) int64 { return x + y }))
	register("Mul2", two, number, nil, binary(func(x, y int64) int64 { return x * y }))
	register("Less2", two, truth, nil, kernel.Stateless(less))
	register("Times", one, number, nil, kernel.Stateless(func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar(times(tensor.Value[int64](c.Input(0)))))
		return nil
	}))
	register("First", []string{"x: N * int64"}, number, []string{"N: int"}, kernel.Stateless(func(c *kernel.Context) error {
		return c.PassInput(0, 0)
	}))
	register("AddLater", two, number, nil, async(later))
	register("Wait", one, number, nil, async(untilCancelled))
	register("Work", one, number, []string{"micros: int"}, newWork)
	register("Fail", one, number, failing, newFail)
	register("OutOfMemory", one, number, nil, kernel.Stateless(func(*kernel.Context) error {
		return status.ResourceExhaustedf("OOM when allocating tensor with shape[9] and type int64")
	}))
	register("FailDistributed", one, number, failing, newFail)
	register("Positive", one, number, nil, kernel.Stateless(func(c *kernel.Context) error {
		if c.Dead = tensor.Value[int64](c.Input(0)) <= 0; c.Dead {
			return nil
		}
		return c.PassInput(0, 0)
	}))
	register("Panic", one, number, nil, kernel.Stateless(func(*kernel.Context) error { panic("at the disco") }))
	register("PanicAsync", one, number, nil, async(func(*kernel.Context, func(error)) { panic("at the disco") }))
	register("DoneTwice", one, number, nil, async(doneTwice))
	register("NoOutput", one, number, nil, kernel.Stateless(func(*kernel.Context) error { return nil }))
	register("WrongType", one, number, nil, kernel.Stateless(func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar(float32(1)))
		return nil
	}))
	register("Var", nil, []string{"ref: Ref(int64)"}, nil, newVar)
	register("AssignRef", []string{"ref: Ref(int64)", "value: int64"}, []string{"out: Ref(int64)"}, nil, kernel.Stateless(assign))
	register("AssignAddRef", []string{"ref: Ref(int64)", "value: int64"}, []string{"out: Ref(int64)"}, nil, kernel.Stateless(assignAdd))
	register("Depth", nil, number, nil, kernel.Stateless(func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar(int64(c.Depth)))
		return nil
	}))
}

func binary(f func(x, y int64) int64) kernel.New {
	return kernel.Stateless(func(c *kernel.Context) error {
		x, y := tensor.Value[int64](c.Input(0)), tensor.Value[int64](c.Input(1))
		out, err := c.Forward(0, 0)
		if err == nil {
			tensor.Values[int64](out)[0] = f(x, y)
		}
		return err
	})
}

func less(c *kernel.Context) error {
	x, y := tensor.Value[int64](c.Input(0)), tensor.Value[int64](c.Input(1))
	out, err := c.AllocateLike(0, c.Input(0))
	if err == nil {
		tensor.Values[bool](out)[0] = x < y
	}
	return err
}

// asyncKernel is a kernel with a callback.
type asyncKernel func(*kernel.Context, func(error))

func (asyncKernel) Compute(*kernel.Context) error { return status.Internalf("called synchronously") }

func (a asyncKernel) ComputeAsync(c *kernel.Context, done func(error)) { a(c, done) }

func async(f func(*kernel.Context, func(error))) kernel.New {
	return func(*kernel.Construction) (kernel.Kernel, error) { return asyncKernel(f), nil }
}

// later adds on another goroutine.
func later(c *kernel.Context, done func(error)) {
	go func() {
		c.SetOutput(0, tensor.Scalar(tensor.Value[int64](c.Input(0))+tensor.Value[int64](c.Input(1))))
		done(nil)
	}()
}

// waiting counts the kernels that wait for their step to be cancelled.
var waiting sync.WaitGroup

func untilCancelled(c *kernel.Context, done func(error)) {
	waiting.Add(1)
	context.AfterFunc(c.Context(), func() {
		waiting.Done()
		done(status.Cancelledf("given up"))
	})
}

func doneTwice(c *kernel.Context, done func(error)) {
	c.SetOutput(0, tensor.Scalar(int64(1)))
	done(nil)
	done(status.Internalf("second"))
}

// newWork returns a kernel that keeps a core busy for the time in its attribute.
func newWork(c *kernel.Construction) (kernel.Kernel, error) {
	d := time.Duration(c.Attrs.Int("micros")) * time.Microsecond
	return kernel.Func(func(c *kernel.Context) error {
		for begin := time.Now(); time.Since(begin) < d; {
		}
		return c.PassInput(0, 0)
	}), nil
}

func newFail(c *kernel.Construction) (kernel.Kernel, error) {
	code, message := status.Code(c.Attrs.Int("code")), c.Attrs.String("message")
	return kernel.Func(func(*kernel.Context) error { return status.New(code, message) }), nil
}

func newVar(*kernel.Construction) (kernel.Kernel, error) {
	v := kernel.NewVariable()
	return kernel.Func(func(c *kernel.Context) error {
		c.SetOutputRef(0, v)
		return nil
	}), nil
}

func assign(c *kernel.Context) error {
	v := c.InputRef(0)
	v.Store(c.Input(1).Retain())
	c.SetOutputRef(0, v)
	return nil
}

func assignAdd(c *kernel.Context) error {
	v, add := c.InputRef(0), tensor.Value[int64](c.Input(1))
	c.SetOutputRef(0, v)
	return v.Update(func(t *tensor.Tensor) error {
		own, err := c.Writable(t)
		if err != nil {
			return err
		}
		tensor.Values[int64](own)[0] += add
		return nil
	})
}
