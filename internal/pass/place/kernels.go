package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

// supported is a device type that can run a node, or all nodes of a group.
type supported struct {
	typ      string
	priority int // of the kernel
}

// supportedTypes returns the device types that can run a node, most preferred first. A node whose
// operation is a function can run on all types. A node without kernels that requests another task
// is assumed to run there, because its program may have other kernels.
func (p *placer) supportedTypes(n *graph.Node) []supported {
	if _, known := p.o.Kernels.LookupOp(n.Op.Name); !known {
		return p.allTypes()
	}
	impls := p.o.Kernels.Kernels(n.Op.Name)
	var out []supported
	otherAttrs := false
	for _, typ := range p.devices.types {
		best, found := bestImpl(impls, typ, n.Attrs)
		if best != nil {
			out = append(out, supported{typ, best.Priority})
		}
		otherAttrs = otherAttrs || best == nil && found
	}
	if len(out) == 0 && !otherAttrs {
		return p.remoteTypes(n)
	}
	slices.SortStableFunc(out, func(a, b supported) int { return cmp.Compare(b.priority, a.priority) })
	return out
}

func typeNames(types []supported, sep string) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.typ
	}
	return strings.Join(names, sep)
}

func (p *placer) allTypes() []supported {
	out := make([]supported, len(p.devices.types))
	for i, typ := range p.devices.types {
		out[i].typ = typ
	}
	return out
}

// remoteTypes returns the device types of a node without kernels that requests another task.
func (p *placer) remoteTypes(n *graph.Node) []supported {
	spec, err := device.Parse(n.Device)
	switch {
	case err != nil || !p.devices.client.DifferentAddressSpace(spec):
		return nil
	case spec.Type != "":
		return []supported{{typ: spec.Type}}
	default:
		return p.allTypes()
	}
}

// bestImpl returns the kernel for a device type and attributes, as kernel.Registry.Find does. found
// reports whether there are kernels for that type with any attributes.
func bestImpl(impls []kernel.Impl, typ string, attrs opdef.Attrs) (best *kernel.Impl, found bool) {
	for i := range impls {
		found = found || impls[i].Serves(typ)
	}
	return kernel.Best(impls, typ, attrs), found
}

// registeredKernels lists the kernels of an operation for error messages.
func (p *placer) registeredKernels(op string) string {
	impls := p.o.Kernels.Kernels(op)
	if len(impls) == 0 {
		return "  <no registered kernels>\n"
	}
	var b strings.Builder
	for i := range impls {
		if impls[i].Device == kernel.Host {
			continue
		}
		fmt.Fprintf(&b, "  device='%s'", impls[i].Device)
		constraints := slices.SortedFunc(slices.Values(impls[i].Types), func(x, y kernel.Constraint) int { return cmp.Compare(x.Attr, y.Attr) })
		for _, c := range constraints {
			fmt.Fprintf(&b, "; %s in %s", c.Attr, opdef.FormatAttr(c.Types))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// intersect returns the types that are in both lists. Priorities are those of the list that has
// any. If both have priorities and their orders differ, all priorities are 0.
func intersect(a, b []supported) []supported {
	inA, inB := common(a, b), common(b, a)
	switch {
	case !prioritized(inB):
		return inA
	case !prioritized(inA):
		return inB
	case slices.EqualFunc(inA, inB, func(x, y supported) bool { return x.typ == y.typ }):
		return inA
	}
	for i := range inA {
		inA[i].priority = 0
	}
	slices.SortFunc(inA, func(x, y supported) int { return compareTypes(x.typ, y.typ) })
	return inA
}

// common returns the types of a that are in b, sorted.
func common(a, b []supported) []supported {
	var out []supported
	for _, s := range a {
		if slices.ContainsFunc(b, func(t supported) bool { return s.typ == t.typ }) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(x, y supported) int {
		return cmp.Or(cmp.Compare(y.priority, x.priority), compareTypes(x.typ, y.typ))
	})
	return out
}

func prioritized(types []supported) bool {
	return slices.ContainsFunc(types, func(s supported) bool { return s.priority != 0 })
}
