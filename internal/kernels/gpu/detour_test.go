package gpu

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestDetoursEnd looks for operations that are placed on the device with a type that neither the
// device nor the host computes.
func TestDetoursEnd(t *testing.T) {
	for _, op := range kernel.Default.Names() {
		if op == "_FusedConv2D" {
			continue // TensorFlow's optimizers make it, with types for cuDNN
		}
		def, _ := kernel.Default.LookupOp(op)
		for _, r := range table()[op] {
			for _, attrs := range choices(r) {
				impl := find(op, r.device, attrs)
				computed := impl != nil && impl.Priority != detourPriority && r.label == ""
				if !computed && allowed(def, attrs) && hostImpl(op, attrs) == nil {
					t.Errorf("%s with %v is a detour to a kernel that does not exist", op, attrs)
				}
			}
		}
	}
}

// allowed reports whether a node may have the types. TensorFlow's table has some that no graph can
// have.
func allowed(def *opdef.Op, attrs opdef.Attrs) bool {
	for _, a := range def.Attrs {
		if dtype, ok := attrs[a.Name].(tensor.DType); ok && a.Types != nil && !slices.Contains(a.Types, dtype) {
			return false
		}
	}
	return true
}
