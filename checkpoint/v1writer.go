package checkpoint

import (
	"bufio"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weft-ml/weft/internal/format/sstable"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// V1Writer writes a checkpoint in the format V1, one file. It keeps the tensors in memory until
// Close. Its methods must not be called concurrently.
type V1Writer struct {
	store Store
	path  string
	meta  *pb.SavedTensorSliceMeta
	index map[string]*pb.SavedSliceMeta
	data  map[string]*pb.SavedTensorSlices // by key; the elements are the memory of held
	held  []tensor.Tensor                  // retained until Close
	meter membudget.Meter                  // of index and data
}

// CreateV1 returns a writer of a checkpoint in the format V1. The file is written by Close.
func CreateV1(path string) *V1Writer { return Store{}.CreateV1(path) }

// CreateV1 is [CreateV1] in the store.
func (s Store) CreateV1(path string) *V1Writer {
	return &V1Writer{
		store: s, path: path, meta: &pb.SavedTensorSliceMeta{Versions: &pb.VersionDef{Producer: versionV1}},
		index: map[string]*pb.SavedSliceMeta{}, data: map[string]*pb.SavedTensorSlices{},
	}
}

// Add adds a tensor. Its elements must not change before Close. It may be released after Add.
// Errors are those of [V1Writer.AddSlice].
func (w *V1Writer) Add(name string, t *tensor.Tensor) error {
	return w.AddSlice(name, t.Shape(), FullSlice(t.Rank()), t)
}

// AddSlice adds a slice of a tensor with the shape full. The error has the code Unimplemented or
// InvalidArgument for types that the format V1 cannot store, and InvalidArgument for slices of more
// than 2 GiB.
func (w *V1Writer) AddSlice(name string, full tensor.Shape, s Slice, t *tensor.Tensor) error {
	part, err := s.Of(full)
	if err != nil {
		return err
	}
	if !part.Equal(t.Shape()) {
		return status.InvalidArgumentf("slice %v of shape %v cannot be saved from a tensor of shape %v", s, full, t.Shape())
	}
	if !utf8.ValidString(name) {
		return status.InvalidArgumentf("the name %q is not valid UTF-8, which the format V1 needs", name)
	}
	const header = 1 << 10 // upper bound for the size of a message without its elements
	if size := maxFieldBytes(t) + header; size > 1<<31 {
		return status.InvalidArgumentf("Tensor slice is too large to serialize (conservative estimate: %d bytes)", size)
	}
	// A copy, of strings and of numbers that get a wider type. The key has the name, which may be
	// that of other slices, with bytes that are escaped.
	if !membudget.Take(maxFieldBytes(t)+stringHeader*int64(t.NumElements())) || !w.meter.Take(storedSize+2*len(name)) {
		return errNoMemory
	}
	fields := typedFields(t)
	if fields == nil {
		return unsupportedV1(t.DType())
	}
	if err := w.register(name, full, s, t.DType()); err != nil {
		return err
	}
	w.held = append(w.held, t.Retain())
	w.data[string(sliceKey(name, s))] = &pb.SavedTensorSlices{Data: &pb.SavedSlice{Name: name, Slice: s.toProto(), Data: fields}}
	return nil
}

// stringHeader is the size of the header of a string of a message, in bytes.
const stringHeader = 24

// unsupportedV1 returns TensorFlow's error for a type that the format V1 cannot store.
func unsupportedV1(dtype tensor.DType) error {
	if dtype == tensor.Uint32 || dtype == tensor.Uint64 {
		return status.InvalidArgumentf("Tensor slice serialization not implemented for dtype %d", dtype)
	}
	return status.Unimplementedf("Saving data type %v not yet supported", dtype)
}

// register adds a slice to the list of tensors.
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

// Close writes the file and waits until it is on disk. After an error there is no new file.
func (w *V1Writer) Close() error {
	f, err := w.store.files.Create(w.path)
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
