// Package probe implements the operations with which TensorFlow's tests inspect a runtime: kernel
// selection, deadlines of steps and names of resources. TensorFlow's servers include them, so
// graphs may contain them.
package probe

import (
	"time"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerLabels()
	registerTime()
	registerStub()
	kernel.RegisterFunc(opdef.Def{Name: "Old", Doc: "Does nothing."}, func(*kernel.Context) error {
		return nil
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "TestAttr", Doc: "Returns 1.",
			Out: []string{"out: T"}, Attrs: []string{"T: {float32, float64}"}, Stateful: true, Shape: opdef.UnknownShape,
		},
		Kernels: kernel.ForTypes("T", constant(tensor.Scalar[float32](1)), tensor.Float32),
	})
	kernel.RegisterNew(opdef.Def{
		Name: "GraphDefVersion", Doc: "Returns the producer version of its graph.",
		Out: []string{"version: int32"}, Stateful: true, Shape: opdef.ScalarShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		return constant(tensor.Scalar(int32(c.GraphVersion)))(c)
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "DevicePlacementOp", Doc: "Returns the name of the device that it runs on.",
		Out: []string{"device: string"}, Stateful: true, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		ctx.SetOutput(0, tensor.Scalar(ctx.Device.Name))
		return nil
	})
}

// constant returns the constructor of kernels that return the same tensor in every step.
func constant(t tensor.Tensor) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		ctx.SetOutput(0, t.Retain())
		return nil
	})
}

// registerLabels registers the operations with several kernels, which the node attribute _kernel
// selects.
func registerLabels() {
	labelled := func(label string) kernel.Impl {
		reported := label
		if reported == "" {
			reported = "default"
		}
		return kernel.Impl{Label: label, New: constant(tensor.Scalar("My label is: " + reported))}
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "KernelLabel", Doc: "Returns the label of its kernel.",
			Out: []string{"result: string"}, Shape: opdef.ScalarShape,
		},
		Kernels: []kernel.Impl{labelled(""), labelled("overload_1"), labelled("overload_2")},
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "KernelLabelRequired", Doc: "Returns the label of its kernel, which is required.",
			In: []string{"input: int32"}, Out: []string{"result: string"},
			Shape: func(c *opdef.ShapeContext) error {
				if _, err := opdef.WithRank(c.In[0], 1); err != nil {
					return err
				}
				c.Out[0] = shapefn.Of()
				return nil
			},
		},
		Kernels: []kernel.Impl{labelled("overload_1"), labelled("overload_2")},
	})
}

// registerTime registers the operations on deadlines and delays.
func registerTime() {
	kernel.RegisterFunc(opdef.Def{
		Name: "GetDeadline", Doc: "Returns the deadline of a function call. Fails in a step, which has none.",
		Out: []string{"deadline_from_epoch_micros: int64"}, Shape: opdef.UnknownShape,
	}, func(*kernel.Context) error {
		return status.InvalidArgumentf("Deadline has not ben set.")
	})
	kernel.RegisterNew(opdef.Def{
		Name: "SleepOp", Doc: "Sleeps.", In: []string{"sleep_seconds: int32"}, Stateful: true,
	}, asleep(func(*kernel.Context) error { return nil }))
	kernel.RegisterNew(opdef.Def{
		Name: "SleepIdentityOp", Doc: "Sleeps, then returns its input.",
		In: []string{"sleep_seconds: int32", "input: T"}, Out: []string{"output: T"}, Attrs: []string{"T: type"},
		Stateful: true,
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = c.In[1]
			return nil
		},
	}, asleep(func(ctx *kernel.Context) error { return ctx.PassInput(1, 0) }))
}

// sleeper waits for the number of seconds in input 0, or until the step ends.
type sleeper struct{ then kernel.Func }

func asleep(then kernel.Func) kernel.New {
	return func(*kernel.Construction) (kernel.Kernel, error) { return sleeper{then}, nil }
}

func (s sleeper) Compute(*kernel.Context) error { return status.Internalf("sleeping is asynchronous") }

func (s sleeper) ComputeAsync(ctx *kernel.Context, done func(error)) {
	if t := ctx.Input(0); t.Rank() != 0 {
		done(status.InvalidArgumentf("Expected argument 0 to be a scalar. Received%v", t))
		return
	}
	timer := time.NewTimer(time.Duration(tensor.Value[int32](ctx.Input(0))) * time.Second)
	go func() {
		defer timer.Stop()
		select {
		case <-timer.C:
			done(s.then(ctx))
		case <-ctx.Context().Done():
			done(status.Cancelledf("the step ended while %s slept", ctx.Node))
		}
	}()
}

// stub is an empty resource.
type stub struct{}

// TypeName names the resource as TensorFlow does.
func (*stub) TypeName() string { return "N10tensorflow12_GLOBAL__N_112StubResourceE" }

func registerStub() {
	kernel.RegisterNew(opdef.Def{
		Name: "StubResourceHandleOp", Doc: "Returns a handle to a resource that need not exist.",
		Out: []string{"resource: resource"}, Attrs: []string{"container: string = ''", "shared_name: string = ''"},
		Stateful: true, Shape: opdef.ScalarShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		place, err := resource.PlaceOf(c, true)
		if err != nil {
			return nil, err
		}
		handle := tensor.Scalar(place.Handle(c.Device, (*stub)(nil).TypeName()))
		return kernel.Func(func(ctx *kernel.Context) error {
			ctx.SetOutput(0, handle.Retain())
			return nil
		}), nil
	})
	registerStubUser("ResourceCreateOp", "Creates the resource behind a handle.", nil, func(ctx *kernel.Context) error {
		h, err := resource.Handle(ctx, 0)
		if err != nil {
			return err
		}
		return kernel.CreateResource(ctx.Device.Resources, h.Container, h.Name, &stub{})
	})
	registerStubUser("ResourceInitializedOp", "Returns true if the resource behind a handle exists.", []string{"initialized: bool"},
		func(ctx *kernel.Context) error {
			_, err := resource.Find[*stub](ctx, 0)
			if err != nil && status.CodeOf(err) != status.NotFound {
				return err
			}
			ctx.SetOutput(0, tensor.Scalar(err == nil))
			return nil
		})
	registerStubUser("ResourceUsingOp", "Fails if the resource behind a handle does not exist.", nil, func(ctx *kernel.Context) error {
		_, err := resource.Find[*stub](ctx, 0)
		return err
	})
}

func registerStubUser(name, doc string, out []string, compute func(*kernel.Context) error) {
	kernel.RegisterFunc(opdef.Def{
		Name: name, Doc: doc, In: []string{"resource: resource"}, Out: out, Stateful: true, Shape: opdef.ScalarShape,
	}, compute)
}
