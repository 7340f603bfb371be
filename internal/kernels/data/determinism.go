package data

import (
	"slices"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// determinism is the policy of a parallel dataset for the order of its elements.
type determinism int8

const (
	// orderByOptions keeps the order unless the options of the iterated dataset have deterministic
	// = false.
	orderByOptions determinism = iota
	orderKept
	orderFree
)

// determinism returns the policy of the node's attribute deterministic or sloppy. Without either
// the order is kept. sloppy = false means orderByOptions, as in TensorFlow: it does not require the
// order.
func (n *node) determinism() (determinism, error) {
	has := func(attr string) bool {
		return slices.ContainsFunc(n.Op.Attrs, func(a opdef.Attr) bool { return a.Name == attr })
	}
	switch {
	case has("sloppy"):
		if n.Attrs.Bool("sloppy") {
			return orderFree, nil
		}
		return orderByOptions, nil
	case !has("deterministic"):
		return orderKept, nil
	}
	switch policy := n.Attrs.String("deterministic"); policy {
	case "default":
		return orderByOptions, nil
	case "true":
		return orderKept, nil
	case "false":
		return orderFree, nil
	default:
		return 0, status.InvalidArgumentf("Unrecognized determinism policy: %s", policy)
	}
}

// sloppyInput returns the policy of legacy operations with an input sloppy.
func (n *node) sloppyInput(ctx *kernel.Context) (determinism, error) {
	sloppy, err := scalar[bool](n, ctx, "sloppy")
	if sloppy {
		return orderFree, err
	}
	return orderKept, err
}

// unordered reports whether elements may be returned as soon as they are ready.
func (d determinism) unordered(r *run) bool {
	return d == orderFree || d == orderByOptions && r.unordered
}

// allowsAnyOrder reports whether serialized options have deterministic = false.
func allowsAnyOrder(options string) bool {
	const field = 1 // deterministic of tensorflow.data.Options
	v, ok := varintField(options, field)
	return ok && v == 0
}
