package state

import (
	"fmt"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// shape merges the shapes of the variable, its slots and the gradient; hyperparameters are scalars.
func (s *step) shape(c *opdef.ShapeContext) error {
	all := tensor.PartialShape{}
	for i := range s.vars {
		in, err := inputShape(c, i, "T")
		if err != nil {
			return err
		}
		if all, err = opdef.MergeShapes(all, in); err != nil {
			return err
		}
	}
	for i, name := range s.inputs {
		var err error
		at := len(s.vars) + i
		switch {
		case name == "indices":
			err = checkIndices(c.In[at], c.In[at-1])
		case !isGradient(name):
			_, err = opdef.WithRank(c.In[at], 0)
		case s.form.rows() && c.In[at].Rank() > 0:
			all, err = opdef.MergeShapes(all, shapefn.Replace(c.In[at], 0, shapefn.Unknown))
		case !s.form.rows():
			all, err = opdef.MergeShapes(all, c.In[at])
		}
		if err != nil {
			return err
		}
	}
	if len(c.Out) > 0 {
		c.Out[0] = all
	}
	return nil
}

func checkIndices(indices, grad tensor.PartialShape) error {
	indices, err := opdef.WithRank(indices, 1)
	if err == nil {
		_, err = opdef.MergeDims(indices.Dim(0), grad.Dim(0))
	}
	return err
}

// collect assigns the inputs of a step to operands.
func (s *step) collect(ctx *kernel.Context) (*operands, error) {
	o := new(operands)
	o.vars, o.hyper = o.room.vars[:0], o.room.hyper[:0]
	for i := range s.vars {
		if !s.form.resource() {
			o.vars = append(o.vars, ctx.InputRef(i))
			continue
		}
		v, err := lookup(ctx, i)
		if status.CodeOf(err) == status.NotFound {
			return nil, status.Internalf("Invalid variable reference.")
		}
		if err != nil {
			return nil, err
		}
		o.vars = append(o.vars, v)
	}
	for i, name := range s.inputs {
		t := ctx.Input(len(s.vars) + i)
		switch {
		case name == "indices":
			o.indices = t
		case isGradient(name):
			o.grad = t
		default:
			o.hyper = append(o.hyper, t)
		}
	}
	return o, nil
}

// check checks all operands in TensorFlow's order.
func (s *step) check(ctx *kernel.Context, o *operands) error {
	for i, t := range o.values {
		if !t.Initialized() {
			return status.FailedPreconditionf("Attempting to use uninitialized variables: %s", s.variableName(ctx, i))
		}
		if t.DType() != o.grad.DType() {
			return status.InvalidArgumentf("%s is %v, not %v", s.vars[i], t.DType(), o.grad.DType())
		}
	}
	shape := o.values[0].Shape()
	if s.form.rows() {
		if err := s.checkSlots(o, shape); err != nil {
			return err
		}
		if len(shape) < 1 {
			return status.InvalidArgumentf("var must be at least 1 dimensional")
		}
		if err := s.checkHyper(o); err != nil {
			return err
		}
		return checkRows(o, shape)
	}
	if err := s.checkHyper(o); err != nil {
		return err
	}
	if err := s.checkSlots(o, shape); err != nil {
		return err
	}
	if !o.grad.Shape().Equal(shape) {
		return differ(s.gradName(), shape, o.grad.Shape())
	}
	return nil
}

func (s *step) checkSlots(o *operands, shape tensor.Shape) error {
	for i, t := range o.values[1:] {
		if !t.Shape().Equal(shape) {
			name := s.vars[i+1]
			if s.name == "AdagradDA" {
				name = "accum"
			}
			return differ(name, shape, t.Shape())
		}
	}
	return nil
}

func differ(name string, want, got tensor.Shape) error {
	return status.InvalidArgumentf("var and %s do not have the same shape%v %v", name, want, got)
}

func (s *step) gradName() string {
	for _, name := range s.args {
		if isGradient(name) {
			return name
		}
	}
	return ""
}

// checkHyper checks that hyperparameters are scalars with the required signs.
func (s *step) checkHyper(o *operands) error {
	texts, signs := s.errors, s.signs
	if s.form.rows() && s.rowsErrors != nil {
		texts, signs = s.rowsErrors, s.rowsSigns
	}
	i := 0
	for _, name := range s.args {
		if isGradient(name) {
			continue
		}
		t := o.hyper[i]
		i++
		if t.Rank() != 0 || !t.OnDevice() && !signs[name].holds(scalar[float64](t)) {
			text, ok := texts[name]
			if !ok {
				text = name + " is not a scalar: "
			}
			return status.InvalidArgumentf("%s%v", text, t.Shape())
		}
	}
	return nil
}

func (s sign) holds(v float64) bool {
	switch s {
	case positive:
		return v > 0
	case notNegative:
		return v >= 0
	case notPositive:
		return v <= 0
	default:
		return true
	}
}

// checkRows checks a gradient for indexed rows.
func checkRows(o *operands, shape tensor.Shape) error {
	g := o.grad
	if o.indices.Rank() != 1 {
		return status.InvalidArgumentf("indices must be one-dimensional")
	}
	if g.Rank() != len(shape) {
		return status.InvalidArgumentf("grad must have the same number of dimensions as var")
	}
	for d := 1; d < len(shape); d++ {
		if shape[d] != g.Shape()[d] {
			return status.InvalidArgumentf("var and grad must match in dimension %d", d)
		}
	}
	if g.Dim(0) != o.indices.Dim(0) {
		return status.InvalidArgumentf("grad must be the same size as indices in the first dimension.")
	}
	if shape[1:].NumElements() == 0 {
		return status.InvalidArgumentf("Inner dimension should be greater than zero.")
	}
	return nil
}

func (s *step) variableName(ctx *kernel.Context, i int) string {
	if s.form.resource() {
		return tensor.Value[*tensor.Handle](ctx.Input(i)).Name
	}
	return fmt.Sprintf("input %d of %s", i, ctx.Node)
}
