package gradients

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
)

func init() { Register(einsumGrad, "Einsum") }

// einsumGrad differentiates by each operand with another Einsum, of the gradient and the other operand: that of A in
// "A,B->C" is "C,B->A", spread over the labels that only A has.
func einsumGrad(c *Call) []Grad {
	equation := strings.ReplaceAll(c.Node.Attrs.String("equation"), " ", "")
	left, result, _ := strings.Cut(equation, "->")
	operands := strings.Split(left, ",")
	grads := c.None()
	for i, labels := range operands {
		if repeats(labels) || repeats(result) {
			c.S.Fail(status.Unimplementedf("gradients: %s has the equation %q, in which a label is repeated in an operand", c.Node.Name, equation))
			return grads
		}
		args, sources := []op.Output{c.DY(0)}, []string{result}
		if len(operands) == 2 {
			args, sources = append(args, conj(c.S, c.In(1-i))), append(sources, operands[1-i])
		}
		kept := keepLabels(labels, strings.Join(sources, ","))
		batch := "" // dimensions that only the other operand has, which sumTo adds up
		if strings.Contains(strings.Join(sources, ","), "...") && !strings.Contains(labels, "...") {
			batch = "..."
		}
		g := op.Einsum(c.S, args, strings.Join(sources, ",")+"->"+batch+kept)
		grads[i] = Of(sumTo(c.S, spread(c.S, g, labels, kept, c.In(i)), c.In(i)))
	}
	return grads
}

// labelsOf splits labels, of which "..." is one.
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

func repeats(labels string) bool {
	seen := map[string]bool{}
	for _, l := range labelsOf(labels) {
		if seen[l] {
			return true
		}
		seen[l] = true
	}
	return false
}

// keepLabels returns the labels that sources have.
func keepLabels(labels, sources string) string {
	var kept strings.Builder
	for _, l := range labelsOf(labels) {
		if strings.Contains(sources, l) {
			kept.WriteString(l)
		}
	}
	return kept.String()
}

// spread repeats a gradient in the dimensions of x whose labels it does not have: what is summed over these has the same
// gradient everywhere. New dimensions behind an ellipsis are counted from the end, others from the beginning.
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
