package metamorphic

import "github.com/weft-ml/weft/tensor"

// loopBound is the modulus of the number of iterations.
const loopBound = 5

// Interpret returns the yields of each step of a program that Check has accepted, each followed by
// the values of the variables after the step.
func Interpret(p *Program) [][]tensor.Tensor {
	types, err := Check(p)
	if err != nil {
		panic(err) // a bug of the caller
	}
	m := machine{types: types, values: map[string]tensor.Tensor{}}
	for _, v := range p.Vars {
		m.values[v.Name] = v.Init
	}
	steps := make([][]tensor.Tensor, p.Steps())
	for i := range steps {
		for _, f := range p.Feeds {
			m.values[f.Name] = f.Values[i]
		}
		steps[i] = m.block(&p.Body)
		for _, v := range p.Vars {
			steps[i] = append(steps[i], m.values[v.Name])
		}
	}
	return steps
}

// machine holds the values of all names. Names are unique, and a value is used only after its
// statement.
type machine struct {
	types  map[string]Type
	values map[string]tensor.Tensor
}

func (m *machine) block(b *Block) []tensor.Tensor {
	for i := range b.Stmts {
		s := &b.Stmts[i]
		for j, v := range m.stmt(s) {
			m.values[s.Out[j]] = v
		}
	}
	return m.get(b.Yield)
}

func (m *machine) get(names []string) []tensor.Tensor {
	out := make([]tensor.Tensor, len(names))
	for i, name := range names {
		out[i] = m.values[name]
	}
	return out
}

// stmt executes a statement and returns its results.
func (m *machine) stmt(s *Stmt) []tensor.Tensor {
	in := m.get(s.In)
	switch s.Kind {
	case kindConst:
		return []tensor.Tensor{s.Value}
	case kindRead:
		return []tensor.Tensor{m.values[s.Var]}
	case kindAssign:
		m.values[s.Var] = in[0]
		return nil
	case kindAdd, kindSub:
		o := operations[map[string]string{kindAdd: "Add", kindSub: "Sub"}[s.Kind]]
		m.values[s.Var] = o.eval([]tensor.Tensor{m.values[s.Var], in[0]}, m.types[s.Var])
		return nil
	case kindIf:
		if tensor.Value[bool](&in[0]) {
			return m.block(&s.Blocks[0])
		}
		return m.block(&s.Blocks[1])
	case kindCall:
		return m.block(&s.Blocks[0])
	case kindRepeat:
		state := in[1:]
		n := tensor.Value[int32](&in[0])
		for range (n%loopBound + loopBound) % loopBound {
			for i, name := range s.Params {
				m.values[name] = state[i]
			}
			state = m.block(&s.Blocks[0])
		}
		return state
	default:
		return []tensor.Tensor{operations[s.Kind].eval(in, m.types[s.Out[0]])}
	}
}
