package graphtext

import (
	"fmt"
	"strings"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// Parse reads a graph with the operations of ops and the functions in the text. Inputs written as
// "?" stay open.
func Parse(ops opdef.Lookup, text string) (*graph.Graph, error) {
	p := &parser{g: graph.New(ops)}
	lines := strings.Split(text, "\n")
	for at := 0; at < len(lines); at++ {
		line, start := strings.TrimSpace(lines[at]), at
		var err error
		if signature, ok := strings.CutPrefix(line, "func "); ok {
			for at++; at < len(lines) && strings.TrimSpace(lines[at]) != "}"; at++ {
			}
			err = p.function(signature, lines[start+1:min(at, len(lines))])
		} else {
			err = p.line(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", start+1, err)
		}
	}
	for _, n := range p.nodes {
		if err := p.connect(n); err != nil {
			return nil, fmt.Errorf("node %s: %w", n.node.Name, err)
		}
	}
	return p.g, nil
}

type parser struct {
	g     *graph.Graph
	nodes []parsedNode
}

type parsedNode struct {
	node   *graph.Node
	inputs []string
}

func (p *parser) line(text string) error {
	if text == "" || strings.HasPrefix(text, "#") {
		return nil
	}
	s := &scanner{rest: text}
	if s.accept("versions ") {
		return p.versions(s)
	}
	return p.node(s)
}

func (p *parser) versions(s *scanner) error {
	v := &p.g.Versions
	for s.space(); s.rest != ""; s.space() {
		name := s.until("=")
		s.expect("=")
		value := s.value("")
		n, isInt := value.(int64)
		list, isList := value.([]int64)
		switch {
		case name == "producer" && isInt:
			v.Producer = int(n)
		case name == "min_consumer" && isInt:
			v.MinConsumer = int(n)
		case name == "bad_consumers" && isList:
			for _, c := range list {
				v.BadConsumers = append(v.BadConsumers, int(c))
			}
		default:
			s.fail("want producer, min_consumer or bad_consumers")
		}
	}
	return s.err
}

// node reads "name = Op(inputs) attr=value ...".
func (p *parser) node(s *scanner) error {
	name, opName, inputs := s.nodeHead()
	if s.err != nil {
		return s.err
	}
	op, ok := p.g.LookupOp(opName)
	if !ok {
		return fmt.Errorf("no operation %s", opName)
	}
	attrs, device, assigned := s.attrs(op)
	if s.err != nil {
		return s.err
	}
	for attr, v := range implied(op, attrs, p.inputTypes(inputs)) {
		if _, given := attrs[attr]; !given {
			attrs[attr] = v
		}
	}
	n, err := p.g.Add(name, opName, attrs)
	if err != nil {
		return err
	}
	n.Device, n.Assigned = device, assigned
	p.nodes = append(p.nodes, parsedNode{n, inputs})
	return nil
}

// nodeHead reads "name = Op(inputs)".
func (s *scanner) nodeHead() (name, op string, inputs []string) {
	name = s.until(" ")
	s.space()
	s.expect("=")
	s.space()
	op = s.until("(")
	s.expect("(")
	s.list(")", func() { inputs = append(inputs, s.until(" ,)")) })
	return name, op, inputs
}

// attrs reads the part of a node after its inputs.
func (s *scanner) attrs(op *opdef.Op) (attrs opdef.Attrs, device, assigned string) {
	attrs = opdef.Attrs{}
	for s.space(); s.rest != ""; s.space() {
		name := s.until("= ")
		s.expect("=")
		switch {
		case name == "device":
			device = s.word()
		case name == "assigned":
			assigned = s.word()
		default:
			kind := ""
			if a := op.Attr(name); a != nil {
				kind = a.Kind
			}
			attrs[name] = s.value(kind)
		}
	}
	return attrs, device, assigned
}

// inputTypes returns the types of data inputs. The type is Invalid if the source is on a later
// line.
func (p *parser) inputTypes(inputs []string) []tensor.DType {
	var types []tensor.DType
	for _, in := range inputs {
		name, index := graph.ParseInput(in)
		if index == graph.Control {
			continue
		}
		t := tensor.Invalid
		if n := p.g.Node(name); n != nil && index < len(n.OutTypes) {
			t = n.OutTypes[index]
		}
		types = append(types, t)
	}
	return types
}

func (p *parser) connect(n parsedNode) error {
	at := 0
	for _, in := range n.inputs {
		if in == "?" {
			at++
			continue
		}
		name, index := graph.ParseInput(in)
		src := p.g.Node(name)
		if src == nil {
			return fmt.Errorf("no node %s for input %s", name, in)
		}
		if index == graph.Control {
			p.g.ConnectControl(src, n.node)
			continue
		}
		if err := p.g.Connect(src.Out(index), n.node, at); err != nil {
			return err
		}
		at++
	}
	if at != n.node.NumInputs() {
		return fmt.Errorf("has %d inputs, not %d", at, n.node.NumInputs())
	}
	return nil
}
