package main

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// probed holds descriptions of the shapes of the arguments and results of an operation; "" for
// unknown ones.
type probed struct{ in, out []string }

// samples holds the input shapes with which follows tests whether an output has the shape of an
// input. It includes tall and wide shapes and dimensions of size one.
var samples = []tensor.PartialShape{
	tensor.MakePartial(3), tensor.MakePartial(6), tensor.MakePartial(3, 5), tensor.MakePartial(5, 2), tensor.MakePartial(1, 5, 7),
	tensor.MakePartial(4, 7, 5), tensor.MakePartial(2, 3, 1, 7), tensor.MakePartial(2, 3, 7, 4), tensor.MakePartial(2, 3, 5, 7, 11),
	tensor.MakePartial(2, 1, 5, 7, 3),
}

// highestRank is the highest rank that probe tests. It is one more than the rank of the inputs of
// 3-D convolutions.
const highestRank = 6

// probe calls the shape function of an operation. It finds the ranks that the function accepts, and
// the shapes that it returns for inputs of unknown shape.
func probe(op *opdef.Op) probed {
	p := probed{in: make([]string, len(op.Inputs)), out: make([]string, len(op.Outputs))}
	attrs, any, ok := sampleAttrs(op)
	if !ok || op.Shape == nil {
		return p
	}
	unknown := make([]tensor.PartialShape, len(op.Inputs))
	outs, err := shapesOf(op, attrs, unknown)
	if err != nil {
		return p
	}
	for i, o := range outs {
		switch {
		case o.RankKnown() && any:
			p.out[i] = inWords(o)
		case o.RankKnown():
			p.out[i] = inWords(tensor.UnknownDims(o.Rank()))
		}
	}
	for i := range op.Inputs {
		p.in[i] = ranks(op, attrs, i)
		for k := range op.Outputs {
			if any && p.out[k] == "" && follows(op, attrs, i, k) {
				p.out[k] = "shape of " + ident(op.Inputs[i].Name)
			}
		}
	}
	return p
}

// ranks describes the ranks that an input may have.
func ranks(op *opdef.Op, attrs opdef.Attrs, input int) string {
	var taken []int
	for rank := range highestRank + 1 {
		in := make([]tensor.PartialShape, len(op.Inputs))
		in[input] = tensor.UnknownDims(rank)
		if _, err := shapesOf(op, attrs, in); err == nil {
			taken = append(taken, rank)
		}
	}
	switch {
	case len(taken) == 1:
		return inWords(tensor.UnknownDims(taken[0]))
	case len(taken) > 1 && taken[0] > 0 && taken[0]+len(taken) == highestRank+1:
		// accepted for this rank and all higher ones
		return "[…" + strings.Repeat(",?", taken[0]) + "]"
	default:
		return ""
	}
}

// follows reports whether an output has the shape of an input for all samples.
func follows(op *opdef.Op, attrs opdef.Attrs, input, output int) bool {
	same := 0
	for _, shape := range samples {
		in := make([]tensor.PartialShape, len(op.Inputs))
		in[input] = shape
		outs, err := shapesOf(op, attrs, in)
		switch {
		case err != nil:
		case !outs[output].Equal(shape):
			return false
		default:
			same++
		}
	}
	return same > 1
}

// shapesOf calls the shape function.
func shapesOf(op *opdef.Op, attrs opdef.Attrs, in []tensor.PartialShape) ([]tensor.PartialShape, error) {
	c := &opdef.ShapeContext{
		Op: op, Attrs: attrs, In: in, InHandles: make([][]tensor.HandleElem, len(in)),
		Out: make([]tensor.PartialShape, len(op.Outputs)), OutHandles: make([][]tensor.HandleElem, len(op.Outputs)),
		Value: func(int) *tensor.Tensor { return nil },
		ValueAsShape: func(i int) tensor.PartialShape {
			if in[i].Rank() == 1 && in[i].Dim(0) >= 0 {
				return tensor.UnknownDims(int(in[i].Dim(0)))
			}
			return tensor.PartialShape{}
		},
	}
	return c.Out, op.Shape(c)
}

// sampleAttrs returns attributes for calls of the shape function. any reports whether the result
// holds for all values of the attributes; it is false if a value was chosen for a required
// attribute. ok is false for operations with lists of tensors.
func sampleAttrs(op *opdef.Op) (attrs opdef.Attrs, any, ok bool) {
	if slices.ContainsFunc(slices.Concat(op.Inputs, op.Outputs), isList) {
		return nil, false, false
	}
	// its shape function depends on the sizes of the types
	attrs, any = opdef.Attrs{}, op.Name != "Bitcast"
	for _, a := range op.Attrs {
		if a.Default != nil {
			continue
		}
		any = any && a.Kind == "type"
		switch a.Kind {
		case "type":
			attrs[a.Name] = tensor.Float32
			if len(a.Types) > 0 && !slices.Contains(a.Types, tensor.Float32) {
				attrs[a.Name] = a.Types[0]
			}
		case "string":
			attrs[a.Name] = strings.Join(a.Strings[:min(1, len(a.Strings))], "")
		case "int":
			attrs[a.Name] = max(1, a.Min)
		case "list(int)":
			attrs[a.Name] = slices.Repeat([]int64{1}, int(max(4, a.Min)))
		default:
			return nil, false, false
		}
	}
	attrs, err := op.CheckAttrs("node", attrs)
	return attrs, any, err == nil
}

// inWords formats a shape with "?" for unknown dimensions.
func inWords(s tensor.PartialShape) string {
	return strings.ReplaceAll(s.String(), "-1", "?")
}
