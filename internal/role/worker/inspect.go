package worker

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/runtime/rendezvous"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Sessions returns the number of sessions in which the task takes part.
func (w *Worker) Sessions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sessions)
}

// Graphs returns the number of graphs that masters have registered.
func (w *Worker) Graphs() int {
	w.mu.Lock()
	sessions := append(slices.Collect(maps.Values(w.sessions)), w.legacy)
	w.mu.Unlock()
	n := 0
	for _, s := range sessions {
		s.mu.Lock()
		n += len(s.graphs)
		s.mu.Unlock()
	}
	return n
}

// Rendezvous returns what the rendezvous of all steps hold.
func (w *Worker) Rendezvous() rendezvous.Contents {
	// a table may hold a million tensors; other steps must be able to begin while they are counted
	w.steps.mu.Lock()
	all := slices.Collect(maps.Values(w.steps.byID))
	w.steps.mu.Unlock()
	var out rendezvous.Contents
	for _, st := range all {
		c := st.table.Contents()
		out.Values += c.Values
		out.Bytes += c.Bytes
		out.Consumers += c.Consumers
	}
	return out
}

// maxShownName bounds the names of resources in descriptions, in bytes. Clients choose any.
const maxShownName = 1 << 10

// Resources describes what the devices keep between steps: variables, queues, tables.
func (w *Worker) Resources() iter.Seq[*pb.ResourceInfo] {
	return func(yield func(*pb.ResourceInfo) bool) {
		for _, d := range w.Devices {
			for _, entry := range d.Resources.All() {
				if !yield(describeResource(&entry)) {
					return
				}
			}
		}
	}
}

func describeResource(entry *kernel.ResourceEntry) *pb.ResourceInfo {
	info := &pb.ResourceInfo{Container: shownName(entry.Container), Name: shownName(entry.Name), Kind: entry.Resource.TypeName()}
	if r, ok := entry.Resource.(kernel.Describer); ok {
		about := r.Describe()
		info.Kind, info.Shape, info.Bytes, info.Elements = about.Kind, about.Shape, about.Bytes, about.Elements
		if about.DType != tensor.Invalid {
			info.Dtype = about.DType.String()
		}
	}
	return info
}

// shownName returns a name as a text that is not too long.
func shownName(name string) string {
	if len(name) > maxShownName {
		name = name[:maxShownName] + "…"
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}
