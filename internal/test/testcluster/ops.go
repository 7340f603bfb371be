package testcluster

import (
	"context"
	"sync/atomic"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Kernels returns a registry with the operations of the default registry, those in more, and these:
//
//	TestAdd(x: float, y: float) -> (z: float)      adds scalars
//	TestFail(x: float) -> (y: float)               fails with the attributes code and message
//	TestBlock(x: float) -> (y: float)              waits until the step is cancelled
//	TestCount() -> (n: float)                      returns how often its kernel has run
//	TestVar() -> (n: float)                        adds 1 to a resource of the device and returns the sum
//	TestPanic(x: float) -> (y: float)              panics
func Kernels(more ...kernel.Op) *kernel.Registry {
	r := kernel.NewRegistry()
	for _, name := range kernel.Default.Names() {
		def, _ := kernel.Default.Def(name)
		r.Register(kernel.Op{Def: def, Kernels: kernel.Default.Kernels(name)})
	}
	for _, op := range []kernel.Op{
		Op("TestAdd", []string{"x: float", "y: float"}, []string{"z: float"}, kernel.Stateless(add)),
		Op("TestFail", []string{"x: float"}, []string{"y: float"}, newFail, "code: int = 3", "message: string = 'failed'"),
		Op("TestBlock", []string{"x: float"}, []string{"y: float"}, newAsync(block)),
		Op("TestCount", nil, []string{"n: float"}, newCount),
		Op("TestVar", nil, []string{"n: float"}, kernel.Stateless(addToVar)),
		Op("TestPanic", []string{"x: float"}, []string{"y: float"}, kernel.Stateless(func(*kernel.Context) error { panic("at the disco") })),
	} {
		r.Register(op)
	}
	for _, op := range more {
		r.Register(op)
	}
	return r
}

// Op returns an operation with a kernel for all types. It is stateful, so it is never folded.
func Op(name string, in, out []string, k kernel.New, attrs ...string) kernel.Op {
	return kernel.Op{
		Def:     opdef.Def{Name: name, Doc: "For tests.", In: in, Out: out, Attrs: attrs, Shape: opdef.UnknownShape, Stateful: true},
		Kernels: kernel.Any(k),
	}
}

func add(c *kernel.Context) error {
	c.SetOutput(0, tensor.Scalar(tensor.Value[float32](c.Input(0))+tensor.Value[float32](c.Input(1))))
	return nil
}

func newFail(c *kernel.Construction) (kernel.Kernel, error) {
	err := status.Errorf(status.Code(c.Attrs.Int("code")), "%s", c.Attrs.String("message"))
	return kernel.Func(func(*kernel.Context) error { return err }), nil
}

// asyncFunc is an asynchronous kernel without state.
type asyncFunc func(c *kernel.Context, done func(error))

func newAsync(f asyncFunc) kernel.New {
	return func(*kernel.Construction) (kernel.Kernel, error) { return f, nil }
}

// ComputeAsync implements kernel.Async.
func (f asyncFunc) ComputeAsync(c *kernel.Context, done func(error)) { f(c, done) }

// Compute implements kernel.Kernel.
func (f asyncFunc) Compute(c *kernel.Context) error {
	end := make(chan error, 1)
	f(c, func(err error) { end <- err })
	return <-end
}

func block(c *kernel.Context, done func(error)) {
	ctx := c.Context()
	context.AfterFunc(ctx, func() { done(status.FromContext(ctx, "blocking")) })
}

func newCount(*kernel.Construction) (kernel.Kernel, error) {
	var n atomic.Int64
	return kernel.Func(func(c *kernel.Context) error {
		c.SetOutput(0, tensor.Scalar(float32(n.Add(1))))
		return nil
	}), nil
}

// variable is a number that outlives steps.
type variable struct{ n atomic.Int64 }

// TypeName implements kernel.Resource.
func (*variable) TypeName() string { return "TestVar" }

func addToVar(c *kernel.Context) error {
	v, err := kernel.LookupOrCreateResource(c.Device.Resources, "", c.Node, func() (*variable, error) { return &variable{}, nil })
	if err == nil {
		c.SetOutput(0, tensor.Scalar(float32(v.n.Add(1))))
	}
	return err
}
