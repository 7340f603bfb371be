package mathops

import (
	"strings"

	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// subscript holds the labels of the dimensions of one operand, or of the result.
type subscript struct {
	text   string // labels, without the ellipsis
	dots   bool   // whether there is an ellipsis
	before int    // number of labels before the ellipsis
}

// equation is an Einstein summation in NumPy's notation, always with an output: "ij,jk->ik". A
// label is one byte. An ellipsis matches any number of dimensions, which are right-aligned and
// broadcast between operands.
type equation struct {
	whole string
	in    []subscript
	out   subscript
}

// parseEquation parses the equation for n operands.
func parseEquation(s string, n int) (e equation, err error) {
	e.whole = s
	sides := strings.Split(s, "->")
	if len(sides) != 2 {
		return e, status.InvalidArgumentf("Expecting exactly one '->' in einsum equation: %s", s)
	}
	terms := strings.Split(sides[0], ",")
	if len(terms) > 2 {
		return e, status.InvalidArgumentf("Expecting 1 or 2 input subscripts in equation '%s' but got: %d", s, len(terms))
	}
	if len(terms) != n {
		return e, status.InvalidArgumentf("Expected %d inputs for equation %s but got: %d", len(terms), s, n)
	}
	for _, t := range terms {
		in, err := parseSubscript(t)
		if err != nil {
			return e, err
		}
		//sizedmake:ok parts of the equation
		e.in = append(e.in, in)
	}
	if e.out, err = parseSubscript(sides[1]); err != nil {
		return e, err
	}
	var known [256]bool // labels of the inputs that were found: an equation may be long
	for _, label := range []byte(e.out.text) {
		if known[label] {
			continue
		}
		if !strings.ContainsRune(sides[0], rune(label)) {
			return e, status.InvalidArgumentf("Einsum output subscripts for equation '%s' has label '%c' which is not present in the input subscripts", s, label)
		}
		known[label] = true
	}
	return e, nil
}

func parseSubscript(s string) (subscript, error) {
	before, after, dots := strings.Cut(s, "...")
	if rest := strings.Count(before+after, "."); rest > 0 {
		return subscript{}, status.InvalidArgumentf("Expected at most one ellipsis (...), but found %d periods (.) in the input subscript: %s", strings.Count(s, "."), s)
	}
	return subscript{text: before + after, dots: dots, before: len(before)}, nil
}

// label identifies a dimension: a byte of the equation, or -1-k for dimension k of the ellipsis
// from the right.
type label int

// labels returns the labels of an operand with the given rank, which must match the subscript.
func (s subscript) labels(rank int) []label {
	all := membudget.MakeCap[label](rank)
	under := rank - len(s.text)
	for i, b := range []byte(s.text) {
		if s.dots && i == s.before {
			all = appendEllipsis(all, under)
		}
		all = append(all, label(b))
	}
	if s.dots && s.before == len(s.text) {
		all = appendEllipsis(all, under)
	}
	return all
}

func appendEllipsis(all []label, n int) []label {
	for k := n - 1; k >= 0; k-- {
		//sizedmake:ok dimensions
		all = append(all, label(-1-k))
	}
	return all
}

func einsumShape(c *opdef.ShapeContext) error {
	e, err := parseEquation(c.Attrs.String("equation"), len(c.In))
	if err != nil {
		return err
	}
	sizes, under, known := map[label]int64{}, 0, true
	for i, in := range e.in {
		s, err := e.withRank(c.In[i], i)
		if err != nil {
			return err
		}
		if !s.RankKnown() {
			known = known && !in.dots
			for _, l := range in.labels(len(in.text)) {
				if _, ok := sizes[l]; !ok {
					sizes[l] = tensor.UnknownDim
				}
			}
			continue
		}
		under = max(under, s.Rank()-len(in.text))
		for k, l := range in.labels(s.Rank()) {
			if err := mergeLabel(sizes, l, s.Dim(k)); err != nil {
				return err
			}
		}
	}
	if !known && e.out.dots {
		return nil
	}
	if !e.out.dots && under > 0 {
		return status.InvalidArgumentf("Shape must be at most rank 0 but is rank %d\n\t for einsum equation '%s' without ellipsis (...) in the output subscripts where input(s) have non-empty broadcasting shape", under, e.whole)
	}
	dims := []int64{}
	for _, l := range e.out.labels(len(e.out.text) + under) {
		dims = append(dims, sizes[l])
	}
	c.Out[0] = shapefn.Of(dims...)
	return nil
}

// withRank checks the rank of operand i.
func (e equation) withRank(s tensor.PartialShape, i int) (tensor.PartialShape, error) {
	in := e.in[i]
	check := opdef.WithRank
	if in.dots {
		check = opdef.WithRankAtLeast
	}
	s, err := check(s, len(in.text))
	if err != nil {
		return s, status.InvalidArgumentf("%s\n\t for %dth input and equation: %s", err, i, e.whole)
	}
	return s, nil
}

func mergeLabel(sizes map[label]int64, l label, dim int64) error {
	old, seen := sizes[l]
	if !seen {
		sizes[l] = dim
		return nil
	}
	if l >= 0 {
		merged, err := opdef.MergeDims(old, dim)
		sizes[l] = merged
		return err
	}
	merged, err := opdef.BroadcastShapes(shapefn.Of(old), shapefn.Of(dim))
	if err == nil {
		sizes[l] = merged.Dim(0)
	}
	return err
}
