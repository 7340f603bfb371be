package worker

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// Sessions returns the number of sessions in which the task takes part.
func (w *Worker) Sessions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.sessions)
}

// Resources describes what the devices keep between steps: variables, queues, tables.
func (w *Worker) Resources() []*pb.ResourceInfo {
	var out []*pb.ResourceInfo
	for _, d := range w.Devices {
		for _, entry := range d.Resources.All() {
			info := &pb.ResourceInfo{Container: entry.Container, Name: entry.Name, Kind: entry.Resource.TypeName()}
			if r, ok := entry.Resource.(kernel.Describer); ok {
				about := r.Describe()
				info.Kind, info.Shape, info.Bytes, info.Elements = about.Kind, about.Shape, about.Bytes, about.Elements
				if about.DType != tensor.Invalid {
					info.Dtype = about.DType.String()
				}
			}
			out = append(out, info)
		}
	}
	return out
}
