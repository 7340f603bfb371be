package stringops

import (
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "StringFormat", Doc: "Formats a string template with tensors. Only the first and last summarize " +
			"elements of each dimension are printed.",
		In:  []string{"inputs: T"},
		Out: []string{"output: string"},
		Attrs: []string{
			"T: list(type) >= 0", "template: string = '%s'", "placeholder: string = '%s'", "summarize: int = 3",
		},
		Shape: func(c *opdef.ShapeContext) error {
			c.Out[0] = tensor.MakePartial()
			_, err := templateParts(c.Attrs, len(c.In))
			return err
		},
	}, newFormatKernel)
}

// templateParts returns the text between the placeholders.
func templateParts(attrs opdef.Attrs, inputs int) ([]string, error) {
	template, placeholder := attrs.String("template"), attrs.String("placeholder")
	n := strings.Count(template, placeholder)
	if placeholder == "" { // Split does not count the ends
		n -= 2
	}
	if n != inputs { // before the parts take memory
		return nil, status.InvalidArgumentf("num placeholders in template and num inputs must match: %d vs. %d", n, inputs)
	}
	return strings.Split(template, placeholder), nil
}

func newFormatKernel(c *kernel.Construction) (kernel.Kernel, error) {
	parts, err := templateParts(c.Attrs, len(c.Inputs))
	if err != nil {
		return nil, err
	}
	ends := c.Attrs.Int("summarize")
	return kernel.Func(func(ctx *kernel.Context) error {
		p := printer{ends: ends, ctx: ctx}
		p.b.WriteString(parts[0])
		for i := range ctx.NumInputs() {
			if p.print(ctx.Input(i)); p.err != nil {
				return p.err
			}
			p.b.WriteString(parts[i+1])
		}
		ctx.SetOutput(0, tensor.Scalar(p.b.String()))
		return nil
	}), nil
}

// printer formats tensors as NumPy does.
type printer struct {
	b    membudget.Text
	ctx  *kernel.Context
	err  error // of a step that has ended
	ends int   // elements printed at either end of a dimension; negative for all

	t tensor.Tensor // the tensor being printed, as a vector
	s tensor.Shape  // its shape
}

func (p *printer) print(t *tensor.Tensor) {
	flat, err := t.WithShape(tensor.Shape{int64(t.NumElements())})
	if err != nil {
		return // unreachable: the number of elements matches the shape
	}
	switch none := p.ends == 0 || t.NumElements() == 0; {
	case none && t.DType() == tensor.Bool: // for which TensorFlow prints nothing
		return
	case none && t.Rank() == 0:
		p.b.WriteString("...")
		return
	}
	p.t, p.s = flat, t.Shape()
	p.dim(0, 0)
}

// dim prints the elements below dimension d, starting at element at.
func (p *printer) dim(d, at int) {
	if d == len(p.s) {
		p.element(at)
		return
	}
	p.b.WriteString("[")
	n, each := int(p.s[d]), int(p.s[d+1:].NumElements())
	ends := p.ends
	if ends < 0 || ends > p.t.NumElements() {
		ends = p.t.NumElements()
	}
	for i := 0; i < min(ends, n) && p.err == nil; i++ {
		if i > 0 {
			p.gap(d)
		}
		p.dim(d+1, at+i*each)
	}
	if n > 2*ends {
		p.gap(d)
		p.b.WriteString("...")
	}
	for i := max(ends, n-ends); i < n && p.err == nil; i++ {
		p.gap(d)
		p.dim(d+1, at+i*each)
	}
	p.b.WriteString("]")
}

// gap prints the separator between two items of dimension d.
func (p *printer) gap(d int) {
	if d == len(p.s)-1 {
		p.b.WriteString(" ")
		return
	}
	//sizedmake:ok a rank
	p.b.WriteString(strings.Repeat("\n", len(p.s)-d-1) + strings.Repeat(" ", d+1))
}

func (p *printer) element(at int) {
	const checkEvery = 1 << 12
	if at%checkEvery == 0 {
		p.err = p.ctx.Context().Err()
	}
	if p.t.DType() == tensor.String {
		text := tensor.Values[string](&p.t)[at]
		membudget.MustTake(escaped * int64(len(text)))
		p.b.WriteString(`"` + tensor.Escape(text, true) + `"`)
		return
	}
	one := p.t.Rows(at, at+1)
	p.b.WriteString(one.Summary(1))
}

// escaped is the memory that the text of an element takes for each of its bytes while it is
// written: an escape has four bytes, and is copied as it grows, and once more with the quotes.
const escaped = 16
