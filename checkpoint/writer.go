package checkpoint

import (
	"bufio"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/sstable"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Writer writes a checkpoint in the format V2. The caller must call Close or Abort; Abort after
// Close does nothing. The methods must not be called concurrently.
type Writer struct {
	store   Store
	prefix  string
	data    *fileio.Temp
	buf     *bufio.Writer // in front of data
	offset  int64
	entries map[string]*pb.BundleEntryProto
	meter   membudget.Meter // of entries
}

const writeBuffer = 1 << 20

// Create returns a writer of a checkpoint in the format V2. It creates the folder, whose parent
// must exist, and removes temporary files of dead writers from it.
func Create(prefix string) (*Writer, error) { return Store{}.Create(prefix) }

// Create is [Create] in the store.
func (s Store) Create(prefix string) (*Writer, error) {
	dir := fileio.Dir(prefix)
	if err := s.files.MakeDir(dir); err != nil {
		return nil, err
	}
	s.files.Sweep(dir)
	data, err := s.files.Create(DataFile(prefix, 0, s.freeShards(prefix, 1)))
	if err != nil {
		return nil, err
	}
	return &Writer{
		store: s, prefix: prefix, data: data, buf: bufio.NewWriterSize(data, writeBuffer), entries: map[string]*pb.BundleEntryProto{},
	}, nil
}

// Add writes a tensor. The error has the code InvalidArgument if the name is empty or was used
// before, or if the type of the tensor cannot be stored (resource handles).
func (w *Writer) Add(name string, t *tensor.Tensor) error {
	if name == "" || name[0] == 0 {
		return status.InvalidArgumentf("a tensor cannot be saved under the name %q", name)
	}
	return w.add(name, t)
}

func (w *Writer) add(key string, t *tensor.Tensor) error {
	if w.entries[key] != nil {
		return status.InvalidArgumentf("Adding duplicate key: %s", key)
	}
	if !t.Initialized() || t.DType() == tensor.Resource {
		return status.InvalidArgumentf("a tensor of type %v cannot be saved", t.DType())
	}
	// Entries stay until Close. Those of the slices of a tensor have its name, which may be long.
	if !w.meter.Take(storedSize + len(key)) {
		return errNoMemory
	}
	size, crc, err := writeElements(w.buf, t)
	if err != nil {
		return err
	}
	w.entries[key] = &pb.BundleEntryProto{
		Dtype: pb.DataType(t.DType()), Shape: pbconv.ShapeToProto(t.Shape()), Offset: w.offset, Size: size, Crc32C: crc32c.Mask(crc),
	}
	w.offset += size
	return nil
}

// AddSlice writes a slice of a tensor with the shape full. The slices of one tensor may be written
// to different checkpoints that [Merge] combines. Errors are those of [Writer.Add], and Internal if
// the slice is not within the tensor.
func (w *Writer) AddSlice(name string, full tensor.Shape, s Slice, t *tensor.Tensor) error {
	if s.IsFull() || s.covers(full) {
		return w.Add(name, t)
	}
	part, err := s.Of(full)
	switch {
	case err != nil:
		return err
	case !part.Equal(t.Shape()):
		return status.InvalidArgumentf("slice %v of shape %v cannot be saved from a tensor of shape %v", s, full, t.Shape())
	case name == "" || name[0] == 0:
		return status.InvalidArgumentf("a tensor cannot be saved under the name %q", name)
	}
	whole := w.entries[name]
	if whole == nil {
		whole = &pb.BundleEntryProto{Dtype: pb.DataType(t.DType()), Shape: pbconv.ShapeToProto(full)}
	}
	if err := sameWhole(name, whole, t.DType(), full); err != nil {
		return err
	}
	if err := w.add(string(sliceKey(name, s)), t); err != nil {
		return err
	}
	whole.Slices = append(whole.Slices, s.toProto())
	w.entries[name] = whole
	return nil
}

// sameWhole checks that a slice belongs to the tensor of an entry.
func sameWhole(name string, whole *pb.BundleEntryProto, dtype tensor.DType, full tensor.Shape) error {
	shape, err := pbconv.ShapeFromProto(whole.GetShape())
	switch {
	case err != nil:
		return err
	case whole.GetDtype() != pb.DataType(dtype) || !shape.Equal(full):
		return status.InvalidArgumentf("a slice of %s, of type %v and shape %v, was added to one of type %v and shape %v",
			name, dtype, full, tensor.DType(whole.GetDtype()), shape)
	case whole.GetSize() > 0:
		return status.InvalidArgumentf("Adding duplicate key: %s", name)
	}
	return nil
}

// Close completes the checkpoint and waits until it is on disk. It replaces an older checkpoint
// with the same prefix. After an error the older checkpoint still exists, unless the error occurred
// while it was being replaced.
func (w *Writer) Close() error {
	defer w.Abort()
	if err := w.buf.Flush(); err != nil {
		return err
	}
	shards := w.store.freeShards(w.prefix, 1)
	w.data.Move(DataFile(w.prefix, 0, shards))
	if err := w.data.Sync(); err != nil {
		return err
	}
	index, err := w.store.newIndex(w.prefix, header(shards), w.entries)
	if err != nil {
		return err
	}
	defer index.Abort()
	if err := w.data.Rename(); err != nil {
		return err
	}
	return w.store.replaceIndex(w.prefix, index, shards)
}

// Abort removes what was written.
func (w *Writer) Abort() { w.data.Abort() }

func header(shards int) *pb.BundleHeaderProto {
	return &pb.BundleHeaderProto{NumShards: int32(shards), Version: &pb.VersionDef{Producer: bundleVersion}}
}

// freeShards returns the number of shards for the names of n new data files: n, or n + 1 if an
// older checkpoint with this prefix has files with those names. The older files must stay until the
// new index has replaced the old one.
func (s Store) freeShards(prefix string, n int) int {
	if !s.files.Exists(IndexFile(prefix)) {
		return n
	}
	// both lists may be long
	old := map[string]bool{}
	for _, file := range s.dataFiles(prefix) {
		old[file] = true
	}
	for shard := range n {
		if old[fileio.Join(fileio.Dir(prefix), fileio.Base(DataFile(prefix, shard, n)))] {
			return n + 1
		}
	}
	return n
}

// newIndex writes an index to a temporary file on disk.
func (s Store) newIndex(prefix string, header *pb.BundleHeaderProto, entries map[string]*pb.BundleEntryProto) (*fileio.Temp, error) {
	f, err := s.files.Create(IndexFile(prefix))
	if err != nil {
		return nil, err
	}
	buf := bufio.NewWriterSize(f, writeBuffer)
	table := sstable.NewWriter(buf)
	err = addMessage(table, "", header)
	for _, key := range sortedKeys(entries) {
		if err == nil {
			err = addMessage(table, key, entries[key])
		}
	}
	if err == nil {
		err = table.Close()
	}
	if err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Abort()
		return nil, err
	}
	return f, nil
}

func addMessage(table *sstable.Writer, key string, m proto.Message) error {
	value, err := pbconv.Marshal(m)
	if status.CodeOf(err) == status.ResourceExhausted {
		return err
	}
	if err != nil {
		return status.Internalf("encoding an entry of an index: %w", err)
	}
	return table.Add([]byte(key), value)
}

// replaceIndex renames the new index of a checkpoint to its final name, which completes the
// checkpoint, and removes the data files of the checkpoint that it replaces. The data files of the
// new one exist already; their names have the given number of shards.
func (s Store) replaceIndex(prefix string, index *fileio.Temp, shards int) error {
	dir := fileio.Dir(prefix)
	if err := s.files.SyncDir(dir); err != nil {
		return err
	}
	if err := index.Rename(); err != nil {
		return err
	}
	if err := s.files.SyncDir(dir); err != nil {
		return err
	}
	for _, file := range s.dataFiles(prefix) {
		if !strings.HasSuffix(file, fmt.Sprintf("-of-%05d", shards)) {
			_ = s.files.Remove(file) // a file that stays is not part of the checkpoint
		}
	}
	return nil
}
