package gpu

import (
	"testing"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func TestSupport(t *testing.T) {
	for op, want := range map[string]struct{ device, passes, host, detour bool }{
		"MatMul":     {device: true, detour: true},
		"Softmax":    {device: true},
		"Identity":   {passes: true, host: true},
		"StringJoin": {},
		"NoSuchOp":   {},
		"Svd":        {detour: true},
	} {
		s := SupportOf(op)
		if s.Device != want.device || s.Passes != want.passes || s.Host != want.host || s.Detour != want.detour {
			t.Errorf("%s: %+v", op, s)
		}
	}
}

// TestSupportAgrees compares the description of an operation with the priority of its kernels.
func TestSupportAgrees(t *testing.T) {
	for _, op := range kernel.Default.Names() {
		s := SupportOf(op)
		detours := map[tensor.DType]bool{}
		for _, d := range s.Detours {
			detours[d] = true
		}
		for _, r := range table()[op] {
			def, _ := kernel.Default.LookupOp(op)
			if len(r.types) != 1 || allOnHost(def, r.host) || r.label != "" || !dependsOn(op, r.types[0].Attr) {
				continue
			}
			for _, dtype := range r.types[0].Types {
				impl := find(op, r.device, opdef.Attrs{r.types[0].Attr: dtype})
				if impl == nil {
					t.Errorf("%s of %v has no kernel", op, dtype)
					continue
				}
				if (impl.Priority == detourPriority) != detours[dtype] {
					t.Errorf("%s of %v: priority %d, detour %v", op, dtype, impl.Priority, detours[dtype])
				}
			}
		}
	}
}

// dependsOn reports whether the kernels of an operation on the device depend on no attribute but
// one.
func dependsOn(op, attr string) bool {
	for _, k := range own[op] {
		for _, c := range k.types {
			if c.Attr != attr {
				return false
			}
		}
	}
	return true
}
