package checkpoint

import (
	"errors"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/sstable"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// versionV1 is the version of the format V1 that this package writes and reads.
const versionV1 = 1

// tables are the open files of a checkpoint in the format V1.
type tables []*fileio.File

// Close closes the files.
func (t tables) Close() error {
	var err error
	for _, f := range t {
		err = errors.Join(err, f.Close())
	}
	return err
}

// OpenV1 opens a checkpoint in the format V1: all files whose names match a pattern ("*", "?" and
// "[…]"). The error has the code NotFound if there are none, and DataLoss if one is damaged.
func OpenV1(pattern string) (*Reader, error) { return Store{}.OpenV1(pattern) }

// OpenV1 is [OpenV1] in the store.
func (s Store) OpenV1(pattern string) (*Reader, error) {
	paths, err := s.files.Match(pattern)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, status.NotFoundf("Unsuccessful TensorSliceReader constructor: Failed to find any matching files for %s", pattern)
	}
	var files tables
	tensors := map[string]*stored{}
	for _, path := range paths {
		f, size, err := s.open(path)
		if err == nil {
			files = append(files, f)
			err = addTable(tensors, path, f, size)
		}
		if err != nil {
			files.Close()
			if status.CodeOf(err) == status.ResourceExhausted {
				return nil, in(path, err)
			}
			return nil, status.DataLossf("Unable to open table file %s: %v: %w", path, status.CodeOf(err), err)
		}
	}
	return &Reader{tensors, files, s}, nil
}

// addTable adds the slices in one file to tensors.
func addTable(tensors map[string]*stored, path string, f *fileio.File, size int64) error {
	table, err := sstable.NewReader(f, size)
	if err != nil {
		return status.Errorf(status.CodeOf(err), "%w: perhaps your file is in a different file format and you need to use a "+
			"different restore operator?", err)
	}
	meta, err := getSlices(table, nil)
	if err != nil {
		return err
	}
	if meta == nil {
		return status.DataLossf("Failed to find the saved tensor slices at the beginning of the checkpoint file: %s", path)
	}
	if err := checkVersion(meta.GetMeta().GetVersions(), versionV1); err != nil {
		return err
	}
	for _, m := range meta.GetMeta().GetTensor() {
		if err := addSlices(tensors, path, table, m); err != nil {
			return status.Errorf(status.CodeOf(err), "tensor %s: %w", m.GetName(), err)
		}
	}
	return nil
}

// getSlices returns the message with a key, nil if there is none.
func getSlices(table *sstable.Reader, key []byte) (*pb.SavedTensorSlices, error) {
	value, err := table.Get(key)
	if err != nil || value == nil {
		return nil, err
	}
	m := &pb.SavedTensorSlices{}
	if ok, err := unmarshal(value, m); err != nil {
		return nil, err
	} else if !ok {
		return nil, status.DataLossf("an entry cannot be parsed")
	}
	return m, nil
}

func addSlices(tensors map[string]*stored, path string, table *sstable.Reader, m *pb.SavedSliceMeta) error {
	shape, err := pbconv.ShapeFromProto(m.GetShape())
	if err != nil {
		return err
	}
	t := tensors[m.GetName()]
	if t == nil {
		t = &stored{Info: Info{Name: m.GetName(), DType: tensor.DType(m.GetType()), Shape: shape}}
		tensors[m.GetName()] = t
	}
	switch {
	case pb.DataType(t.DType) != m.GetType() || typedFieldLen(t.DType, &pb.TensorProto{}) < 0:
		return status.DataLossf("type %v cannot be stored, or the slices have different types", m.GetType())
	case !t.Shape.Equal(shape):
		return status.Internalf("Incompatible tensor shapes detected for tensor %s: existing = %v, new = %v", t.Name, t.Shape, shape)
	}
	if !membudget.Take(storedSize + pieceSize*int64(len(m.GetSlice()))) {
		return errNoMemory
	}
	for _, p := range m.GetSlice() {
		s, err := sliceFromProto(p, shape)
		if err != nil {
			return err
		}
		if !s.IsFull() {
			t.Slices = append(t.Slices, s)
		}
		t.pieces = append(t.pieces, piece{s, func() (tensor.Tensor, error) {
			part, err := loadV1(table, t, s)
			return part, in(path, err)
		}})
	}
	return nil
}

// loadV1 reads a slice.
func loadV1(table *sstable.Reader, t *stored, s Slice) (tensor.Tensor, error) {
	m, err := getSlices(table, sliceKey(t.Name, s))
	if err != nil {
		return tensor.Tensor{}, err
	}
	if m == nil {
		return tensor.Tensor{}, status.DataLossf("slice %v of tensor %s is missing", s, t.Name)
	}
	shape, err := s.Of(t.Shape)
	if err != nil {
		return tensor.Tensor{}, err
	}
	p := m.GetData().GetData()
	if n := typedFieldLen(t.DType, p); int64(n) != shape.NumElements() {
		return tensor.Tensor{}, status.DataLossf("slice %v of tensor %s has %d elements, not %d", s, t.Name, n, shape.NumElements())
	}
	if shape.NumElements() == 0 {
		return tensor.Alloc(t.DType, shape)
	}
	p.Dtype, p.TensorShape, p.TensorContent = pb.DataType(t.DType), pbconv.ShapeToProto(shape), nil
	return pbconv.TensorFromProto(p)
}
