package checkpoint

import (
	"bufio"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/sstable"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// V1Writer gathers a checkpoint in the format V1, one file, in memory.
type V1Writer struct {
	path  string
	meta  *pb.SavedTensorSliceMeta
	index map[string]*pb.SavedSliceMeta
	data  map[string]*pb.SavedTensorSlices // share the memory of held
	held  []tensor.Tensor                  // until Close
}

// CreateV1 begins a checkpoint in the format V1. Nothing is written before Close.
func CreateV1(path string) *V1Writer {
	return &V1Writer{
		path: path, meta: &pb.SavedTensorSliceMeta{Versions: &pb.VersionDef{Producer: versionV1}},
		index: map[string]*pb.SavedSliceMeta{}, data: map[string]*pb.SavedTensorSlices{},
	}
}

// Add adds a tensor, whose elements must not change before Close; the caller may release it.
func (w *V1Writer) Add(name string, t *tensor.Tensor) error {
	return w.AddSlice(name, t.Shape(), FullSlice(t.Rank()), t)
}

// AddSlice adds a piece of a tensor of shape full. Unimplemented for types that the format does not
// know.
func (w *V1Writer) AddSlice(name string, full tensor.Shape, s Slice, t *tensor.Tensor) error {
	part, err := s.Of(full)
	if err != nil {
		return err
	}
	if !part.Equal(t.Shape()) {
		return status.InvalidArgumentf("slice %v of shape %v cannot be saved from a tensor of shape %v", s, full, t.Shape())
	}
	if !utf8.ValidString(name) {
		return status.InvalidArgumentf("the name %q is no UTF-8 text, which the format V1 needs", name)
	}
	const header = 1 << 10 // more than what a message takes beside the elements
	if size := maxFieldBytes(t) + header; size > 1<<31 {
		return status.InvalidArgumentf("Tensor slice is too large to serialize (conservative estimate: %d bytes)", size)
	}
	fields := typedFields(t)
	if fields == nil {
		return unknownV1(t.DType())
	}
	if err := w.register(name, full, s, t.DType()); err != nil {
		return err
	}
	w.held = append(w.held, t.Retain())
	w.data[string(sliceKey(name, s))] = &pb.SavedTensorSlices{Data: &pb.SavedSlice{Name: name, Slice: s.toProto(), Data: fields}}
	return nil
}

func unknownV1(dtype tensor.DType) error {
	if dtype == tensor.Uint32 || dtype == tensor.Uint64 {
		return status.InvalidArgumentf("Tensor slice serialization not implemented for dtype %d", dtype)
	}
	return status.Unimplementedf("Saving data type %v not yet supported", dtype)
}

// register adds a piece to the list of tensors.
func (w *V1Writer) register(name string, full tensor.Shape, s Slice, dtype tensor.DType) error {
	m := w.index[name]
	if m == nil {
		m = &pb.SavedSliceMeta{Name: name, Shape: pbconv.ShapeToProto(full), Type: pb.DataType(dtype)}
		w.index[name] = m
		w.meta.Tensor = append(w.meta.Tensor, m)
	}
	shape, err := pbconv.ShapeFromProto(m.GetShape())
	switch {
	case err != nil:
		return err
	case !shape.Equal(full):
		return status.Internalf("Mismatching shapes: existing tensor = %v, trying to add name %s, shape = %v", shape, name, full)
	case m.GetType() != pb.DataType(dtype):
		return status.Internalf("Mismatching types: existing type = %v, trying to add name %s, type = %v",
			tensor.DType(m.GetType()), name, dtype)
	}
	m.Slice = append(m.Slice, s.toProto())
	return nil
}

// Close writes the file, which appears whole or not at all, and waits until it is on disk.
func (w *V1Writer) Close() error {
	f, err := fileio.Create(w.path)
	if err != nil {
		return err
	}
	defer f.Abort()
	defer w.release()
	slices.SortFunc(w.meta.Tensor, func(a, b *pb.SavedSliceMeta) int { return strings.Compare(a.GetName(), b.GetName()) })
	buf := bufio.NewWriterSize(f, writeBuffer)
	table := sstable.NewWriter(buf)
	if err := addMessage(table, "", &pb.SavedTensorSlices{Meta: w.meta}); err != nil {
		return err
	}
	for _, key := range sortedKeys(w.data) {
		if err := addMessage(table, key, w.data[key]); err != nil {
			return err
		}
	}
	if err := table.Close(); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return f.Commit()
}

func (w *V1Writer) release() {
	for i := range w.held {
		w.held[i].Release()
	}
	w.held = nil
}
