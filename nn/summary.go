package nn

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// Input describes an input of a network for [Model.Summary] and [Model.LoadKeras].
type Input struct {
	DType tensor.DType // float32 if [tensor.Invalid]
	Shape []int64      // without the batch
}

// spec returns the element type and the shape of a batch.
func (in Input) spec() (tensor.DType, tensor.PartialShape) {
	dtype := in.DType
	if dtype == tensor.Invalid {
		dtype = tensor.Float32
	}
	return dtype, tensor.MakePartial(append([]int64{-1}, in.Shape...)...)
}

// Summary writes a table of the layers, in the order in which they are applied, with the shapes of
// their outputs and their numbers of parameters. "?" is the size of the batch. It returns the build
// errors of the network.
func (m *Model) Summary(w io.Writer, inputs ...Input) error {
	s := op.NewScope()
	c := m.context(s, false)
	var ins []op.Output
	for _, in := range inputs {
		dtype, shape := in.spec()
		ins = append(ins, op.Placeholder(s, dtype, op.PlaceholderShape(shape)))
	}
	m.forward(c, ins)
	if err := s.Err(); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "layer\toutput\tparameters")
	trained, frozen := int64(0), int64(0)
	for _, l := range c.weights.order {
		n := int64(0)
		for _, v := range l.values {
			n += v.Shape.NumElements()
			if v.Trainable {
				trained += v.Shape.NumElements()
			} else {
				frozen += v.Shape.NumElements()
			}
		}
		for _, p := range l.tables {
			n += p.Shape.NumElements()
			trained += p.Shape.NumElements()
		}
		fmt.Fprintf(t, "%s\t%s\t%d\n", l.name, shapeText(l.output), n)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d parameters: %d trained, %d not\n", trained+frozen, trained, frozen)
	return err
}

// shapeText returns a shape with "?" for unknown sizes.
func shapeText(p tensor.PartialShape) string { return strings.ReplaceAll(p.String(), ",", ", ") }
