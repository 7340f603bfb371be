package listops

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Stack is a stack of tensors. A loop pushes values that the gradient loop, which iterates in
// reverse, pops.
type Stack struct {
	name  string
	dtype tensor.DType
	limit int

	mu       sync.Mutex
	values   []tensor.Tensor // guarded by mu
	isClosed bool            // guarded by mu
}

// TypeName returns TensorFlow's type name of the resource.
func (*Stack) TypeName() string { return "N10tensorflow5StackE" }

// Close drops the values, at the end of the step or on request. Later operations on the stack fail.
func (s *Stack) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	release(s.values)
	s.values, s.isClosed = nil, true
}

func (s *Stack) push(value tensor.Tensor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isClosed:
		return s.closedError()
	case len(s.values) >= s.limit:
		return status.InvalidArgumentf("Stack[%s] overflowed its max_size (%d)", s.name, s.limit)
	}
	s.values = membudget.Append(s.values, value.Retain())
	return nil
}

func (s *Stack) pop() (tensor.Tensor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.isClosed:
		return tensor.Tensor{}, s.closedError()
	case len(s.values) == 0:
		return tensor.Tensor{}, status.InvalidArgumentf("Stack[%s] is empty when calling Pop().", s.name)
	}
	last := len(s.values) - 1
	value := s.values[last]
	s.values[last] = tensor.Tensor{}
	s.values = s.values[:last]
	return value, nil
}

func (s *Stack) closedError() error {
	return status.InvalidArgumentf("Stack[%s] has already been closed.", s.name)
}

func init() {
	for _, v := range []struct {
		suffix, handle string
		in             []string
	}{{"", "Ref(string)", nil}, {"V2", "resource", []string{"max_size: int32"}}} {
		registerStack(v.suffix, v.handle, v.in)
	}
}

// registerStack registers the stack operations in one of their versions.
func registerStack(suffix, handle string, in []string) {
	byHandle := handle == "resource"
	register := func(def opdef.Def, impl kernel.New) {
		def.Name += suffix
		kernel.RegisterNew(def, impl)
	}
	register(opdef.Def{
		Name: "Stack", Doc: "Creates a stack of tensors for the current step.",
		In: in, Out: []string{"handle: " + handle}, Attrs: []string{"elem_type: type", "stack_name: string = ''"},
		Stateful: true, Shape: handleShape,
	}, newStack)
	register(opdef.Def{
		Name: "StackPush", Doc: "Pushes a tensor onto a stack and returns it.",
		In: []string{"handle: " + handle, "elem: T"}, Out: []string{"output: T"},
		Attrs: []string{"T: type", "swap_memory: bool = false"}, Stateful: byHandle, Shape: secondShape,
	}, onStack(push))
	register(opdef.Def{
		Name: "StackPop", Doc: "Pops the last tensor pushed onto a stack.",
		In: []string{"handle: " + handle}, Out: []string{"elem: elem_type"},
		Attrs: []string{"elem_type: type"}, Stateful: byHandle, Shape: opdef.UnknownShape,
	}, onStack(pop))
	register(opdef.Def{
		Name: "StackClose", Doc: "Closes a stack. Later operations on it fail.",
		In: []string{"handle: " + handle}, Stateful: byHandle, Shape: checkHandle,
	}, onStack(func(_ *kernel.Context, s *Stack) error {
		s.Close()
		return nil
	}))
}

func secondShape(c *opdef.ShapeContext) error {
	c.Out[0] = c.In[1]
	return nil
}

// stackCount is the number of stacks created in this process.
var stackCount atomic.Int64

func newStack(c *kernel.Construction) (kernel.Kernel, error) {
	base, dtype, form := c.Attrs.String("stack_name"), c.Attrs.Type("elem_type"), c.Outputs[0]
	if base == "" {
		base = c.Node
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		s := &Stack{name: uniqueName(base, stackCount.Add(1)-1), dtype: dtype, limit: math.MaxInt32}
		if ctx.NumInputs() > 0 {
			size := ctx.Input(0)
			if size.Rank() != 0 {
				return status.InvalidArgumentf("Stack size must be a scalar, but had shape: %v", size.Shape())
			}
			if n := tensor.Value[int32](size); n >= 0 {
				s.limit = int(n)
			}
		}
		return createResource(ctx, form, "_stacks", s.name, s)
	}), nil
}

func onStack(f func(*kernel.Context, *Stack) error) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		s, err := find[*Stack](ctx, "Stack handle must have two elements")
		if err != nil {
			return err
		}
		return f(ctx, s)
	})
}

func push(ctx *kernel.Context, s *Stack) error {
	elem := ctx.Input(1)
	if elem.DType() != s.dtype {
		return status.InvalidArgumentf("Must have type %d but got %d", s.dtype, elem.DType())
	}
	if err := s.push(*elem); err != nil {
		return err
	}
	return ctx.PassInput(1, 0)
}

func pop(ctx *kernel.Context, s *Stack) error {
	value, err := s.pop()
	if err != nil {
		return err
	}
	if err := place(ctx, &value); err != nil { // it may have been pushed in another memory
		return err
	}
	ctx.SetOutput(0, value)
	return nil
}
