package gradients

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/op"
)

func init() { Register(einsumGrad, "Einsum") }

// einsumGrad computes the gradient of each operand with another Einsum, of the output's gradient
// and the other operand: for A in "A,B->C" it is "C,B->A", broadcast over the labels that only A
// has. If A repeats a label, only its diagonal contributes.
func einsumGrad(c *Call) []Grad {
	s := c.S
	equation := strings.ReplaceAll(c.Node.Attrs.String("equation"), " ", "")
	left, result, _ := strings.Cut(equation, "->")
	operands := strings.Split(left, ",")
	grads := c.None()
	for i, labels := range operands {
		args, sources := []op.Output{c.DY(0)}, []string{result}
		if len(operands) == 2 {
			args, sources = append(args, conj(s, c.In(1-i))), append(sources, operands[1-i])
		}
		diagonal, x := once(labels), c.In(i)
		if diagonal != labels {
			x = op.Einsum(s, []op.Output{x}, labels+"->"+diagonal)
		}
		kept := keepLabels(diagonal, strings.Join(sources, ","))
		batch := "" // batch dimensions of the other operand only, which sumTo reduces
		if strings.Contains(strings.Join(sources, ","), "...") && !strings.Contains(labels, "...") {
			batch = "..."
		}
		g := spread(s, op.Einsum(s, args, strings.Join(sources, ",")+"->"+batch+kept), diagonal, kept, x)
		if diagonal != labels {
			g = op.Einsum(s, []op.Output{g}, batch+diagonal+"->"+batch+labels)
		}
		grads[i] = Of(sumTo(s, g, c.In(i)))
	}
	return grads
}

// labelsOf splits a subscript into labels; "..." is one label.
func labelsOf(labels string) []string {
	var out []string
	for labels != "" {
		n := 1
		if strings.HasPrefix(labels, "...") {
			n = 3
		}
		out, labels = append(out, labels[:n]), labels[n:]
	}
	return out
}

// once returns labels without duplicates.
func once(labels string) string {
	var out strings.Builder
	for _, l := range labelsOf(labels) {
		if !strings.Contains(out.String(), l) {
			out.WriteString(l)
		}
	}
	return out.String()
}

// keepLabels returns the labels that also occur in sources.
func keepLabels(labels, sources string) string {
	var kept strings.Builder
	for _, l := range labelsOf(labels) {
		if strings.Contains(sources, l) {
			kept.WriteString(l)
		}
	}
	return kept.String()
}

// spread broadcasts a gradient to the dimensions of x whose labels it lacks: a sum has the same
// gradient for all its terms. New dimensions after an ellipsis are counted from the end, others
// from the start.
func spread(s *op.Scope, g op.Output, labels, kept string, x op.Output) op.Output {
	if labels == kept {
		return g
	}
	all := labelsOf(labels)
	ellipsis := slices.Index(all, "...")
	insert := func(i, axis int) {
		if !strings.Contains(kept, all[i]) {
			g = op.ExpandDims(s, g, op.Const(s, int32(axis)))
		}
	}
	for i := range ellipsis {
		insert(i, i)
	}
	for i := len(all) - 1; i > ellipsis; i-- {
		insert(i, i-len(all))
	}
	return op.Mul(s, g, op.OnesLike(s, x))
}
