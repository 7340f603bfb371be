package state

import (
	"fmt"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// step is one step of an optimizer: an operation on a variable and its slots. It is registered twice, for variables behind
// references ("Apply…") and for those behind handles ("ResourceApply…").
type step struct {
	name    string // without "Apply"
	doc     string
	vars    []string // the variable and its slots
	scalars []string // hyperparameters before the gradient
	grad    string   // name of the gradient
	after   []string // hyperparameters after the gradient
	attrs   []string // besides T and use_locking
	kernels func(s *step, resource bool) kernel.Table
}

func (s *step) register() {
	for _, resource := range []bool{false, true} {
		def := opdef.Def{
			Name: "Apply" + s.name, Doc: s.doc,
			Attrs: append([]string{"T: " + numbers, "use_locking: bool = false"}, s.attrs...),
			Shape: s.shape(resource),
		}
		typ := "Ref(T)"
		if resource {
			def.Name, def.Stateful, typ = "Resource"+def.Name, true, "resource"
		} else {
			def.Out = []string{"out: Ref(T)"}
		}
		for _, v := range s.vars {
			def.In = append(def.In, v+": "+typ)
		}
		for _, name := range s.scalars {
			def.In = append(def.In, name+": T")
		}
		def.In = append(def.In, s.grad+": T")
		for _, name := range s.after {
			def.In = append(def.In, name+": T")
		}
		kernel.Register(kernel.Op{Def: def, Kernels: kernel.ByType("T", s.kernels(s, resource))})
	}
}

func (s *step) gradIndex() int { return len(s.vars) + len(s.scalars) }

// isScalar reports whether input i is a hyperparameter.
func (s *step) isScalar(i int) bool { return i >= len(s.vars) && i != s.gradIndex() }

func (s *step) inputName(i int) string {
	switch n := len(s.vars); {
	case i < n:
		return s.vars[i]
	case i < s.gradIndex():
		return s.scalars[i-n]
	case i == s.gradIndex():
		return s.grad
	}
	return s.after[i-s.gradIndex()-1]
}

func (s *step) shape(resource bool) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		all := c.In[s.gradIndex()]
		for i, in := range c.In {
			var err error
			switch {
			case s.isScalar(i):
				_, err = opdef.WithRank(in, 0)
			case i < len(s.vars) && resource:
				in, err = heldBy(c, i, c.Attrs.Type("T"))
				fallthrough
			default:
				if err == nil {
					all, err = opdef.MergeShapes(all, in)
				}
			}
			if err != nil {
				return err
			}
		}
		if !resource {
			c.Out[0] = all
		}
		return nil
	}
}

// update is the arithmetic of a step for elements of type T: v are the elements of the variable and its slots, p the
// hyperparameters, g the gradient.
type update[T tensor.Elem] func(v [][]T, p []T, g []T)

// dense returns the kernel of a step with the given arithmetic.
func dense[T tensor.Elem](s *step, resource bool, f update[T]) kernel.New {
	return kernel.Stateless(func(ctx *kernel.Context) error {
		vars, err := s.variables(ctx, resource)
		if err != nil {
			return err
		}
		values, unlock := kernel.LockAll(vars...)
		defer unlock()
		if err := s.check(ctx, values, resource); err != nil {
			return err
		}
		v := make([][]T, len(values))
		for i, t := range values {
			v[i] = tensor.Values[T](kernel.Writable(t))
		}
		var p []T
		for i := range ctx.NumInputs() {
			if s.isScalar(i) {
				p = append(p, tensor.Value[T](ctx.Input(i)))
			}
		}
		f(v, p, tensor.Values[T](ctx.Input(s.gradIndex())))
		if !resource {
			ctx.SetOutputRef(0, vars[0])
		}
		return nil
	})
}

func (s *step) variables(ctx *kernel.Context, resource bool) ([]*kernel.Variable, error) {
	vars := make([]*kernel.Variable, len(s.vars))
	for i := range vars {
		if !resource {
			vars[i] = ctx.InputRef(i)
			continue
		}
		v, err := variableOf(ctx, i)
		if status.CodeOf(err) == status.NotFound {
			return nil, status.Internalf("Invalid variable reference.")
		}
		if err != nil {
			return nil, err
		}
		vars[i] = v
	}
	return vars, nil
}

// check compares the shapes of everything that takes part.
func (s *step) check(ctx *kernel.Context, values []*tensor.Tensor, resource bool) error {
	dtype := ctx.Input(s.gradIndex()).DType()
	for i, t := range values {
		if !t.Initialized() {
			return status.FailedPreconditionf("Attempting to use uninitialized variables: %s", s.variableName(ctx, i, resource))
		}
		if t.DType() != dtype {
			return status.InvalidArgumentf("%s is %v, not %v", s.vars[i], t.DType(), dtype)
		}
	}
	for i := range ctx.NumInputs() {
		if s.isScalar(i) && ctx.Input(i).Rank() != 0 {
			return status.InvalidArgumentf("%s is not a scalar: %v", s.inputName(i), ctx.Input(i).Shape())
		}
	}
	shape := values[0].Shape()
	for i, t := range values[1:] {
		if !t.Shape().Equal(shape) {
			return status.InvalidArgumentf("var and %s do not have the same shape%v %v", s.vars[i+1], shape, t.Shape())
		}
	}
	if g := ctx.Input(s.gradIndex()); !g.Shape().Equal(shape) {
		return status.InvalidArgumentf("var and %s do not have the same shape%v %v", s.grad, shape, g.Shape())
	}
	return nil
}

func (s *step) variableName(ctx *kernel.Context, i int, resource bool) string {
	if resource {
		return tensor.Value[*tensor.Handle](ctx.Input(i)).Name
	}
	return fmt.Sprintf("input %d of %s", i, ctx.Node)
}
