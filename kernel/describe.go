package kernel

import (
	"cmp"
	"slices"

	"github.com/weft-ml/weft/tensor"
)

// A Description is what a resource tells those who operate a task.
type Description struct {
	Kind     string       // "variable", "queue"
	DType    tensor.DType // Invalid if it has none
	Shape    string       // "[10,784]"; "" if it has none
	Bytes    int64        // memory of the elements
	Elements int64        // number of elements of a queue or table
}

// A Describer is a resource that describes itself. Describe must not wait for a step.
type Describer interface {
	Describe() Description
}

// A ResourceEntry is a resource with its container and name.
type ResourceEntry struct {
	Container, Name string
	Resource        Resource
}

// All returns the resources, sorted by container, name and type.
func (r *Resources) All() []ResourceEntry {
	r.mu.RLock()
	var out []ResourceEntry
	for container, resources := range r.containers {
		for key, res := range resources {
			out = append(out, ResourceEntry{container, key.name, res})
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(out, func(a, b ResourceEntry) int {
		return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Resource.TypeName(), b.Resource.TypeName()))
	})
	return out
}

// Describe implements [Describer]. A variable that is being written is described without a shape,
// because a writer may hold its lock for long.
func (v *Variable) Describe() Description {
	d := Description{Kind: "variable"}
	if !v.mu.TryRLock() {
		return d
	}
	defer v.mu.RUnlock()
	if v.t.Initialized() {
		d.DType, d.Shape, d.Bytes = v.t.DType(), v.t.Shape().String(), v.t.ByteSize()
	}
	return d
}
