package metamorphic

import (
	"fmt"
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// Type is the static type of a value: its element type and shape.
type Type struct {
	DType tensor.DType
	Shape string // as printed by tensor.Shape, so that types are comparable
}

func typeOf(t *tensor.Tensor) Type { return Type{t.DType(), t.Shape().String()} }

// The shapes of values. Each broadcasts to those after it.
const (
	scalar = "[]"
	vector = "[3]"
	matrix = "[2,3]"
)

var shapes = map[string]tensor.Shape{scalar: {}, vector: {3}, matrix: {2, 3}}

func (t Type) shape() tensor.Shape { return shapes[t.Shape] }

func (t Type) isNumber() bool { return t.DType.IsInteger() || t.DType.IsFloating() }

// dtypes are the element types of values.
var dtypes = []tensor.DType{tensor.Int32, tensor.Int64, tensor.Float32, tensor.Float64, tensor.Bool, tensor.String}

// Check returns the types of all names of the program, or an error if the program is invalid.
func Check(p *Program) (map[string]Type, error) {
	c := checker{types: map[string]Type{}, vars: map[string]Var{}}
	visible := map[string]bool{}
	for _, v := range p.Vars {
		if err := c.define(visible, v.Name, typeOf(&v.Init)); err != nil {
			return nil, err
		}
		if v.Ref && !typeOf(&v.Init).isNumber() {
			return nil, fmt.Errorf("%s: a variable by reference holds numbers", v.Name)
		}
		delete(visible, v.Name) // a variable is read by statements, not used as a value
		c.vars[v.Name] = v
	}
	for _, f := range p.Feeds {
		if len(f.Values) == 0 || len(f.Values) != p.Steps() {
			return nil, fmt.Errorf("%s: %d values for %d steps", f.Name, len(f.Values), p.Steps())
		}
		for i := range f.Values {
			if typeOf(&f.Values[i]) != typeOf(&f.Values[0]) {
				return nil, fmt.Errorf("%s: values of several types", f.Name)
			}
		}
		if err := c.define(visible, f.Name, typeOf(&f.Values[0])); err != nil {
			return nil, err
		}
	}
	_, err := c.block(&p.Body, visible, false)
	return c.types, err
}

type checker struct {
	types map[string]Type
	vars  map[string]Var
}

func (c *checker) define(visible map[string]bool, name string, t Type) error {
	if _, ok := c.types[name]; ok || name == "" {
		return fmt.Errorf("the name %q is already used", name)
	}
	if shapes[t.Shape] == nil || !slices.Contains(dtypes, t.DType) {
		return fmt.Errorf("%s: values are not of type %v", name, t)
	}
	c.types[name] = t
	visible[name] = true
	return nil
}

// block returns the types of the yields of a block. visible are the types of the names that it may
// use.
func (c *checker) block(b *Block, outside map[string]bool, inFunction bool) ([]Type, error) {
	visible, here := map[string]bool{}, map[string]bool{}
	for name := range outside {
		visible[name] = true
	}
	for i := range b.Stmts {
		s := &b.Stmts[i]
		in, err := c.use(visible, s.In)
		if err != nil {
			return nil, fmt.Errorf("%s %v: %w", s.Kind, s.Out, err)
		}
		for _, name := range s.After {
			if !here[name] {
				return nil, fmt.Errorf("%s %v: %s is not in the same block", s.Kind, s.Out, name)
			}
		}
		out, err := c.stmt(s, in, visible, inFunction)
		if err != nil {
			return nil, fmt.Errorf("%s %v: %w", s.Kind, s.Out, err)
		}
		if len(out) != len(s.Out) {
			return nil, fmt.Errorf("%s %v: %d results", s.Kind, s.Out, len(out))
		}
		for j, name := range s.Out {
			if err := c.define(visible, name, out[j]); err != nil {
				return nil, err
			}
			here[name] = true
		}
	}
	return c.use(visible, b.Yield)
}

func (c *checker) use(visible map[string]bool, names []string) ([]Type, error) {
	out := make([]Type, len(names))
	for i, name := range names {
		if !visible[name] {
			return nil, fmt.Errorf("there is no value %s", name)
		}
		out[i] = c.types[name]
	}
	return out, nil
}

// stmt returns the types of the results of a statement.
func (c *checker) stmt(s *Stmt, in []Type, visible map[string]bool, inFunction bool) ([]Type, error) {
	switch s.Kind {
	case kindConst:
		if len(in) > 0 || !s.Value.Initialized() {
			return nil, fmt.Errorf("a constant takes a value only")
		}
		return []Type{typeOf(&s.Value)}, nil
	case kindRead, kindAssign, kindAdd, kindSub:
		return c.variable(s, in, inFunction)
	case kindIf, kindRepeat, kindCall:
		return c.nested(s, in, visible, inFunction)
	}
	o, ok := operations[s.Kind]
	if !ok || len(in) != o.arity {
		return nil, fmt.Errorf("no such operation with %d arguments", len(in))
	}
	out, ok := o.result(in)
	if !ok {
		return nil, fmt.Errorf("not for %v", in)
	}
	return []Type{out}, nil
}

func (c *checker) variable(s *Stmt, in []Type, inFunction bool) ([]Type, error) {
	v, ok := c.vars[s.Var]
	t := c.types[s.Var]
	switch {
	case !ok:
		return nil, fmt.Errorf("there is no variable %s", s.Var)
	case v.Ref && inFunction:
		return nil, fmt.Errorf("%s is a reference, which functions do not take", s.Var)
	case s.Kind == kindRead && len(in) == 0:
		return []Type{t}, nil
	case s.Kind != kindRead && slices.Equal(in, []Type{t}) && (s.Kind == kindAssign || t.isNumber()):
		return nil, nil
	}
	return nil, fmt.Errorf("%s is not for %v", s.Var, in)
}

func (c *checker) nested(s *Stmt, in []Type, visible map[string]bool, inFunction bool) ([]Type, error) {
	blocks := map[string]int{kindIf: 2, kindRepeat: 1, kindCall: 1}
	leading := map[string][]Type{kindIf: {{tensor.Bool, scalar}}, kindRepeat: {{tensor.Int32, scalar}}}[s.Kind]
	if len(s.Blocks) != blocks[s.Kind] || len(in) < len(leading) || !slices.Equal(in[:len(leading)], leading) {
		return nil, fmt.Errorf("wrong arguments %v", in)
	}
	if s.callsFunctions() && c.places(s) > 1 {
		return nil, fmt.Errorf("variables of several devices in a function")
	}
	params := in[len(leading):]
	if len(s.Params) != len(params) {
		return nil, fmt.Errorf("%d loop variables for %d values", len(s.Params), len(params))
	}
	for i, name := range s.Params {
		if err := c.define(visible, name, params[i]); err != nil {
			return nil, err
		}
	}
	var out []Type
	for i := range s.Blocks {
		t, err := c.block(&s.Blocks[i], visible, inFunction || s.callsFunctions())
		if err != nil {
			return nil, err
		}
		if i > 0 && !slices.Equal(t, out) || s.Kind == kindRepeat && !slices.Equal(t, params) {
			return nil, fmt.Errorf("yields %v", t)
		}
		out = t
	}
	for _, name := range s.Params {
		delete(visible, name)
	}
	return out, nil
}

// places returns the number of devices of the variables in the blocks of a statement.
func (c *checker) places(s *Stmt) int {
	devices := map[int]bool{}
	for _, name := range accessed(s.Blocks) {
		devices[c.vars[name].Device] = true
	}
	return len(devices)
}
