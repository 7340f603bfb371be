package gpu

import (
	"slices"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Support says how nodes of an operation compute on a GPU.
type Support struct {
	Device  bool           // by kernels on the device, for some types
	Passes  bool           // by the CPU's kernel, which does not access the elements
	Host    bool           // by the CPU's kernel on the memory of the host, for some types
	Detour  bool           // by a detour, for some types
	Detours []tensor.DType // the types with detours, if they depend on a type; sorted
}

// SupportOf describes an operation. All fields are zero if it cannot be placed on a GPU.
func SupportOf(op string) Support {
	var s Support
	def, ok := kernel.Default.LookupOp(op)
	if !ok {
		return s
	}
	for _, r := range table()[op] {
		switch {
		case allOnHost(def, r.host):
			s.Host = true
		case len(r.types) > 0:
			s.addTypes(op, r.types[0])
		case len(own[op]) > 0:
			s.Device = true
		case untouched[op]:
			s.Passes = true
		default:
			s.Detour = true
		}
	}
	slices.Sort(s.Detours)
	s.Detours = slices.Compact(s.Detours)
	return s
}

// addTypes adds the types of a row.
func (s *Support) addTypes(op string, types kernel.Constraint) {
	for _, t := range types.Types {
		switch {
		case slices.ContainsFunc(own[op], func(k ownKernel) bool { return k.takes(types.Attr, t) }):
			s.Device = true
		case untouched[op]:
			s.Passes = true
		default:
			s.Detour = true
			s.Detours = append(s.Detours, t)
		}
	}
}

// takes reports whether a kernel is for a type of an attribute.
func (k ownKernel) takes(attr string, t tensor.DType) bool {
	for _, c := range k.types {
		if c.Attr == attr && !slices.Contains(c.Types, t) {
			return false
		}
	}
	return true
}
