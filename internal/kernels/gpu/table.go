package gpu

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

//go:embed table.txt
var tableText string

func init() { kernel.Default.Extend(implsOf) }

// row is a line of the table: a kernel of TensorFlow's.
type row struct {
	device   string
	types    []kernel.Constraint
	host     []string
	priority int
	label    string
}

// table holds the rows by operation. It is read when the first graph is placed, and not when the
// program starts.
var table = sync.OnceValue(func() map[string][]row {
	out := make(map[string][]row, 1<<10)
	for line := range strings.Lines(tableText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if op, r, ok := parseRow(strings.TrimSuffix(line, "\n")); ok {
			out[op] = append(out[op], r)
		}
	}
	return out
})

// parseRow parses a line. ok is false if Weft has none of the types.
func parseRow(line string) (op string, r row, ok bool) {
	cells := strings.Split(line, "\t")
	op, r.device = cells[0], kernel.GPU
	if cells[2] != "-" {
		r.host = strings.Split(cells[2], ",")
	}
	for note := range strings.FieldsSeq(cells[3]) {
		name, value, _ := strings.Cut(note, "=")
		switch name {
		case "default":
			r.device = kernel.DefaultDevice
		case "label":
			r.label = value
		case "priority":
			r.priority, _ = strconv.Atoi(value)
		}
	}
	for cell := range strings.FieldsSeq(cells[1]) {
		attr, list, found := strings.Cut(cell, "=")
		if !found || list == "*" {
			continue
		}
		var types []tensor.DType
		for name := range strings.SplitSeq(list, ",") {
			if t, ok := typeNames[name]; ok {
				types = append(types, t)
			}
		}
		if len(types) == 0 {
			return op, r, false
		}
		r.types = append(r.types, kernel.OfType(attr, types...))
	}
	return op, r, true
}

// typeNames are Weft's types by their names in the table, which are those of TensorFlow's Python.
var typeNames = func() map[string]tensor.DType {
	out := map[string]tensor.DType{}
	for t := tensor.Float32; t < 64; t++ {
		if t.Valid() {
			out[t.Name()] = t
		}
	}
	return out
}()

// implsOf returns the kernels of an operation for GPUs.
func implsOf(name string) []kernel.Impl {
	rows := table()[name]
	if rows == nil {
		return nil
	}
	op, _ := kernel.Default.LookupOp(name)
	var out []kernel.Impl
	for _, r := range rows {
		impl := kernel.Impl{Device: r.device, Types: r.types, Host: r.host, Priority: r.priority, Label: r.label}
		if allOnHost(op, r.host) {
			impl.New = onHost(name)
			out = append(out, impl)
			continue
		}
		for _, k := range own[name] {
			computed := impl
			//sizedmake:ok the types of a kernel, at the start
			computed.Types = slices.Concat(r.types, k.types)
			computed.New = onDevice(k.make, r.host)
			out = append(out, computed)
		}
		if untouched[name] {
			impl.New = hosted(name, r.host, false)
		} else {
			impl.New = hosted(name, r.host, true)
			impl.Priority = detourPriority
		}
		out = append(out, impl)
	}
	return out
}

// detourPriority is below that of all other kernels, so that a node which may also run on a CPU
// does.
const detourPriority = -1

// allOnHost reports whether an operation has no arguments in the memory of the device.
func allOnHost(op *opdef.Op, host []string) bool {
	for _, args := range [][]opdef.Arg{op.Inputs, op.Outputs} {
		for _, a := range args {
			always := a.DType == tensor.String || a.DType == tensor.Resource
			if !always && !slices.Contains(host, a.Name) {
				return false
			}
		}
	}
	return true
}

// onDevice returns the constructor of a kernel that computes on the device.
func onDevice(make kernel.New, host []string) kernel.New {
	return func(c *kernel.Construction) (kernel.Kernel, error) {
		k, err := make(c)
		if err != nil {
			return nil, err
		}
		m := kernel.MemoryOf(c, host)
		if !slices.Contains(m.Out, true) {
			m.Out = nil
		}
		return kernel.OnGPU(k, c.Device.GPU, m.Out), nil
	}
}
