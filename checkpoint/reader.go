package checkpoint

import (
	"io"
	"slices"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Reader reads a checkpoint. Its methods may be called concurrently.
type Reader struct {
	tensors map[string]*stored
	files   io.Closer
	store   Store
}

// stored describes a tensor in a checkpoint and how to load it.
type stored struct {
	Info
	pieces []piece
}

// A piece is a slice of a tensor, or the whole tensor, that is stored contiguously.
type piece struct {
	slice Slice
	load  func() (tensor.Tensor, error)
}

// Open opens the checkpoint with the given prefix. If there is none in the format V2, it opens the
// checkpoint in the format V1 whose file names match prefix. The error has the code NotFound if
// there is neither, and DataLoss if a file is damaged.
func Open(prefix string) (*Reader, error) {
	return Store{}.Open(prefix)
}

// Open is [Open] in the store.
func (s Store) Open(prefix string) (*Reader, error) {
	if _, err := s.files.Stat(IndexFile(prefix)); status.CodeOf(err) == status.NotFound {
		return s.OpenV1(prefix)
	}
	return s.openBundle(prefix)
}

// Close closes the files. Tensors that were read stay valid.
func (r *Reader) Close() error { return r.files.Close() }

// Tensors describes all tensors, in order of their names.
func (r *Reader) Tensors() []Info {
	infos := make([]Info, 0, len(r.tensors))
	for _, name := range sortedKeys(r.tensors) {
		infos = append(infos, r.tensors[name].Info)
	}
	return infos
}

// Lookup describes a tensor. The error has the code NotFound if it is not in the checkpoint.
func (r *Reader) Lookup(name string) (Info, error) {
	t, err := r.find(name)
	if err != nil {
		return Info{}, err
	}
	return t.Info, nil
}

func (r *Reader) find(name string) (*stored, error) {
	t := r.tensors[name]
	if t == nil {
		return nil, status.NotFoundf("Key %s not found in checkpoint", name)
	}
	return t, nil
}

// Read returns a whole tensor, which the caller releases. The error has the code NotFound if it is
// not in the checkpoint, and DataLoss if it is damaged.
func (r *Reader) Read(name string) (tensor.Tensor, error) {
	t, err := r.find(name)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return t.read(r.store, FullSlice(len(t.Shape)))
}

// ReadSlice returns a slice of a tensor, which the caller releases. The slice need not be one that
// is stored. Errors are those of [Reader.Read], and Internal if the slice is not within the tensor.
func (r *Reader) ReadSlice(name string, s Slice) (tensor.Tensor, error) {
	t, err := r.find(name)
	if err != nil {
		return tensor.Tensor{}, err
	}
	return t.read(r.store, s)
}

// Verify reads every tensor and returns the first error.
func (r *Reader) Verify() error {
	for _, info := range r.Tensors() {
		for i := range r.tensors[info.Name].pieces {
			t, err := r.tensors[info.Name].pieces[i].load()
			if err != nil {
				return status.Errorf(status.CodeOf(err), "tensor %s: %w", info.Name, err)
			}
			t.Release()
		}
	}
	return nil
}

func (t *stored) read(from Store, s Slice) (tensor.Tensor, error) {
	shape, err := s.Of(t.Shape)
	if err != nil {
		return tensor.Tensor{}, err
	}
	want := s.bounds(t.Shape)
	var parts []*piece
	left := shape.NumElements()
	for i := range t.pieces {
		p := &t.pieces[i]
		have := p.slice.bounds(t.Shape)
		if slices.Equal(have, want) {
			return p.load()
		}
		if common, ok := have.intersect(want); ok {
			parts = append(parts, p)
			n, _ := common.Of(t.Shape)
			left -= n.NumElements()
		}
	}
	if left != 0 {
		return tensor.Tensor{}, status.InvalidArgumentf(
			"Does not have sufficient slices for partitioned tensor %s to restore in slice_spec: %v", t.Name, s)
	}
	if err := disjoint(from, t.Name, parts, t.Shape); err != nil {
		return tensor.Tensor{}, err
	}
	return t.assemble(want, shape, parts)
}

// assemble copies a slice from the pieces that it overlaps.
func (t *stored) assemble(want Slice, shape tensor.Shape, parts []*piece) (tensor.Tensor, error) {
	var out tensor.Tensor
	for _, p := range parts {
		part, err := p.load()
		// allocated only after a piece was loaded, in case the entry is false
		if err == nil && !out.Initialized() {
			out, err = tensor.Alloc(t.DType, shape)
		}
		if err != nil {
			part.Release()
			out.Release()
			return tensor.Tensor{}, err
		}
		copyOverlap(&out, want, &part, p.slice.bounds(t.Shape))
		part.Release()
	}
	if !out.Initialized() {
		return tensor.Alloc(t.DType, shape)
	}
	return out, nil
}

// maxPieces bounds the number of pieces in one read. The check for overlaps is quadratic in it.
const maxPieces = 1 << 14

// disjoint checks that no two pieces of a tensor overlap. It ends with the context of the store.
func disjoint(from Store, name string, parts []*piece, shape tensor.Shape) error {
	if len(parts) > maxPieces {
		return status.ResourceExhaustedf("a read needs more than %d slices of a tensor", maxPieces)
	}
	known := make([]Slice, len(parts))
	for i, p := range parts {
		if err := from.files.Ended(name); err != nil {
			return err
		}
		known[i] = p.slice.bounds(shape)
		for j := range i {
			if known[i].overlaps(known[j]) {
				return status.Internalf("Overlapping slices: existing slice = %v, new slice = %v", parts[j].slice, p.slice)
			}
		}
	}
	return nil
}
