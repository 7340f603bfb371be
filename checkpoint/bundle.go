package checkpoint

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/sstable"
	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// bundleVersion is the version of the format V2 that this package writes and reads.
const bundleVersion = 1

// A bundle is a checkpoint in the format V2.
type bundle struct {
	store  Store
	prefix string
	shards int
	order  byteOrder // of the elements

	mu   sync.Mutex
	data map[int]*fileio.File // open data files by shard; guarded by mu
}

// byteOrder is the byte order of elements and of the lengths of strings.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func (s Store) openBundle(prefix string) (*Reader, error) {
	header, entries, err := s.readIndex(prefix)
	if err != nil {
		return nil, in(IndexFile(prefix), err)
	}
	b := &bundle{store: s, prefix: prefix, shards: int(header.GetNumShards()), order: binary.LittleEndian, data: map[int]*fileio.File{}}
	if header.GetEndianness() == pb.BundleHeaderProto_BIG {
		b.order = binary.BigEndian
	}
	tensors := map[string]*stored{}
	var meter membudget.Meter
	for key, entry := range entries {
		if !meter.Take(storedSize + pieceSize*len(entry.GetSlices())) {
			return nil, in(IndexFile(prefix), errNoMemory)
		}
		if key[0] == 0 { // a slice, which the entry of the whole tensor lists
			continue
		}
		t, err := b.tensor(key, entry, entries)
		if err != nil {
			return nil, in(IndexFile(prefix), status.DataLossf("entry %s: %w", key, err))
		}
		tensors[key] = t
	}
	return &Reader{tensors, b, s}, nil
}

const (
	// storedSize is the memory of a tensor that can be read, and pieceSize that of a piece of it,
	// in bytes, with their entries in maps.
	storedSize, pieceSize = 400, 200
)

// errNoMemory is the error for an index or for elements that there is no memory for. A block of an
// index can claim to have millions of entries, each with a key of the size of the block.
var errNoMemory = status.ResourceExhaustedf("out of memory: there is none for what the file has (--memory-limit)")

// unmarshal decodes a message, whose memory it asks for. ok is false if it is malformed.
func unmarshal(b []byte, m proto.Message) (ok bool, err error) {
	if !protomem.Take(m.ProtoReflect().Descriptor(), b) {
		return false, errNoMemory
	}
	return proto.Unmarshal(b, m) == nil, nil
}

// readIndex returns the header and the entries of an index.
func (s Store) readIndex(prefix string) (*pb.BundleHeaderProto, map[string]*pb.BundleEntryProto, error) {
	path := IndexFile(prefix)
	f, size, err := s.open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	table, err := sstable.NewReader(f, size)
	if err != nil {
		return nil, nil, err
	}
	header, entries := &pb.BundleHeaderProto{}, map[string]*pb.BundleEntryProto{}
	first := true
	var meter membudget.Meter
	for key, value := range table.All(&err) {
		if first != (len(key) == 0) {
			return nil, nil, status.DataLossf("the header is not the first entry")
		}
		if first {
			first = false
			if ok, err := unmarshal(value, header); err != nil {
				return nil, nil, err
			} else if !ok {
				return nil, nil, status.DataLossf("unable to parse header")
			}
			continue
		}
		entry := &pb.BundleEntryProto{}
		if !meter.Take(len(key)) {
			return nil, nil, errNoMemory
		}
		if ok, err := unmarshal(value, entry); err != nil {
			return nil, nil, err
		} else if !ok {
			return nil, nil, status.DataLossf("Entry for key %s not parseable.", key)
		}
		entries[string(key)] = entry
	}
	switch {
	case err != nil:
		return nil, nil, err
	case first:
		return nil, nil, status.DataLossf("failed to seek to header entry")
	}
	return header, entries, checkVersion(header.GetVersion(), bundleVersion)
}

// checkVersion returns an error if a reader of version consumer cannot read a checkpoint.
func checkVersion(v *pb.VersionDef, consumer int32) error {
	switch {
	case v.GetProducer() < 0:
		return status.InvalidArgumentf("Checkpoint producer version %d below min producer 0 supported by TensorFlow 2.21.0.  "+
			"Please regenerate your checkpoint.", v.GetProducer())
	case v.GetMinConsumer() > consumer:
		return status.InvalidArgumentf("Checkpoint min consumer version %d above current version %d for TensorFlow 2.21.0.  "+
			"Please upgrade TensorFlow.", v.GetMinConsumer(), consumer)
	}
	if slices.Contains(v.GetBadConsumers(), consumer) {
		return status.InvalidArgumentf("Checkpoint disallows consumer version %d.  Please upgrade TensorFlow: this version "+
			"is likely buggy.", consumer)
	}
	return nil
}

// tensor returns the tensor of an entry after checking the entry and those of its slices.
func (b *bundle) tensor(name string, entry *pb.BundleEntryProto, entries map[string]*pb.BundleEntryProto) (*stored, error) {
	dtype, shape, err := b.check(entry)
	if err != nil {
		return nil, err
	}
	t := &stored{Info: Info{Name: name, DType: dtype, Shape: shape}}
	if len(entry.GetSlices()) == 0 {
		t.pieces = []piece{{FullSlice(len(shape)), func() (tensor.Tensor, error) { return b.load(entry, dtype, shape) }}}
		return t, nil
	}
	seen := map[*pb.BundleEntryProto]bool{}
	for _, p := range entry.GetSlices() {
		s, err := sliceFromProto(p, shape)
		if err != nil {
			return nil, err
		}
		part, ok := entries[string(sliceKey(name, s))]
		if !ok {
			return nil, status.DataLossf("slice %v is missing", s)
		}
		if seen[part] { // each look-up takes the time of a name, which may be long
			return nil, status.DataLossf("slice %v is listed twice", s)
		}
		seen[part] = true
		partType, partShape, err := b.check(part)
		if err != nil {
			return nil, err
		}
		if want, err := s.Of(shape); err != nil || partType != dtype || !partShape.Equal(want) {
			return nil, status.DataLossf("slice %v has the type and shape %v%v", s, partType, partShape)
		}
		t.Slices = append(t.Slices, s)
		t.pieces = append(t.pieces, piece{s, func() (tensor.Tensor, error) { return b.load(part, partType, partShape) }})
	}
	return t, nil
}

// check returns the type and shape of an entry, and an error if its sizes contradict each other.
func (b *bundle) check(e *pb.BundleEntryProto) (tensor.DType, tensor.Shape, error) {
	shape, err := pbconv.ShapeFromProto(e.GetShape())
	if err != nil {
		return 0, nil, err
	}
	dtype := tensor.DType(e.GetDtype())
	if e.GetDtype() != pb.DataType(dtype) || !dtype.Valid() || dtype == tensor.Resource {
		return 0, nil, status.DataLossf("type %v cannot be stored", e.GetDtype())
	}
	if len(e.GetSlices()) > 0 {
		return dtype, shape, nil
	}
	n := shape.NumElements()
	switch {
	case e.GetShardId() < 0 || int(e.GetShardId()) >= b.shards || e.GetOffset() < 0 || e.GetSize() < 0:
		return 0, nil, status.DataLossf("the elements are %d bytes at %d in shard %d of %d", e.GetSize(), e.GetOffset(), e.GetShardId(), b.shards)
	case dtype.Size() > 0 && (n > e.GetSize() || n*int64(dtype.Size()) != e.GetSize()), n > e.GetSize():
		return 0, nil, status.DataLossf("Invalid size in bundle entry: stored size %d; shape %v of %v", e.GetSize(), shape, dtype)
	}
	return dtype, shape, nil
}

// load reads the elements of a checked entry.
func (b *bundle) load(e *pb.BundleEntryProto, dtype tensor.DType, shape tensor.Shape) (tensor.Tensor, error) {
	path := DataFile(b.prefix, int(e.GetShardId()), b.shards)
	f, err := b.file(int(e.GetShardId()), path)
	if err != nil {
		return tensor.Tensor{}, err
	}
	size, err := f.Size()
	if err != nil {
		return tensor.Tensor{}, err
	}
	if e.GetOffset() > size || e.GetSize() > size-e.GetOffset() {
		return tensor.Tensor{}, status.DataLossf("%s: the file has %d bytes and ends before an entry of %d bytes at %d",
			path, size, e.GetSize(), e.GetOffset())
	}
	t, err := b.elements(f, e, dtype, shape)
	return t, in(path, err)
}

// file returns the open data file of a shard.
func (b *bundle) file(shard int, path string) (*fileio.File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.data[shard]; f != nil {
		return f, nil
	}
	f, err := b.store.files.Open(path)
	if err != nil {
		return nil, err
	}
	b.data[shard] = f
	return f, nil
}

// Close closes the data files.
func (b *bundle) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	for _, f := range b.data {
		err = errors.Join(err, f.Close())
	}
	clear(b.data)
	return err
}

// open opens a file and returns its size.
func (s Store) open(path string) (*fileio.File, int64, error) {
	f, err := s.files.Open(path)
	if err != nil {
		return nil, 0, err
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}
