package gpu

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestRegistry compares the kernels of the registry with TensorFlow's list, which is not the text
// that the program reads: every kernel of an operation that Weft has is there for each of its
// types, with the same arguments in the memory of the host, and there are no others.
func TestRegistry(t *testing.T) {
	text, err := os.ReadFile("testdata/tensorflow-2.21.txt")
	if err != nil {
		t.Fatal(err)
	}
	known, rows := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		op, want, ok := parseRow(line)
		known[op] = true
		if _, has := kernel.Default.LookupOp(op); !has || !ok {
			continue
		}
		rows++
		for _, attrs := range choices(want) {
			got := find(op, want.device, attrs)
			if got == nil {
				t.Errorf("%s has no kernel for %s with %v", op, want.device, attrs)
				continue
			}
			if !sameArgs(got.Host, want.host) {
				t.Errorf("%s with %v: host arguments %v, want %v", op, attrs, got.Host, want.host)
			}
		}
	}
	if rows < 900 {
		t.Errorf("only %d rows", rows)
	}
	for _, op := range kernel.Default.Names() {
		for _, k := range kernel.Default.Kernels(op) {
			if k.Device != kernel.CPU && !known[op] {
				t.Errorf("%s has a kernel for %s, which TensorFlow does not have", op, k.Device)
			}
		}
	}
	for op := range own {
		if !known[op] {
			t.Errorf("%s computes on the device, and is not in the table", op)
		}
	}
}

// choices returns attributes that a row matches: each type of each attribute.
func choices(r row) []opdef.Attrs {
	base := opdef.Attrs{}
	if r.label != "" {
		base["_kernel"] = r.label
	}
	for _, c := range r.types {
		base[c.Attr] = c.Types[0]
	}
	out := []opdef.Attrs{base}
	for _, c := range r.types {
		for _, dtype := range c.Types[1:] {
			more := base.Clone()
			more[c.Attr] = dtype
			out = append(out, more)
		}
	}
	return out
}

// find returns the kernel that is registered for exactly a device.
func find(op, device string, attrs opdef.Attrs) *kernel.Impl {
	var best *kernel.Impl
	for _, k := range kernel.Default.Kernels(op) {
		if k.Device == device && k.Matches(attrs) && (best == nil || k.Priority > best.Priority) {
			best = &k
		}
	}
	return best
}

func sameArgs(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestHostArgumentsExist checks that a host argument is an argument of the operation.
func TestHostArgumentsExist(t *testing.T) {
	for name, rows := range table() {
		op, ok := kernel.Default.LookupOp(name)
		if !ok {
			t.Errorf("the table has %s, which is no operation", name)
			continue
		}
		for _, r := range rows {
			for _, arg := range r.host {
				is := func(a opdef.Arg) bool { return a.Name == arg }
				if !slices.ContainsFunc(op.Inputs, is) && !slices.ContainsFunc(op.Outputs, is) {
					t.Errorf("%s has no argument %s", name, arg)
				}
			}
		}
	}
}

// TestListsNameOperations checks the lists of operations in this package.
func TestListsNameOperations(t *testing.T) {
	for name, list := range map[string]map[string]bool{"untouched": untouched, "reads": reads} {
		for op := range list {
			if table()[op] == nil {
				t.Errorf("%s: %s is not in the table", name, op)
			}
		}
	}
}

func TestDefaultKernelsAreLast(t *testing.T) {
	// int32 has a kernel for GPUs and one for all devices; bool has one for all devices alone.
	impl := kernel.Default.Find("Abs", kernel.GPU, opdef.Attrs{"T": tensor.Int32})
	if impl == nil || impl.Device != kernel.GPU {
		t.Errorf("Abs of int32: %+v", impl)
	}
	if impl := kernel.Default.Find("Abs", kernel.CPU, opdef.Attrs{"T": tensor.Float32}); impl == nil || impl.Device != kernel.CPU {
		t.Errorf("Abs on a CPU: %+v", impl)
	}
	if impl := kernel.Default.Find("NoOp", kernel.GPU, nil); impl == nil || impl.Device != kernel.DefaultDevice {
		t.Errorf("NoOp: %+v", impl)
	}
}
