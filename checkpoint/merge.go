package checkpoint

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Merge combines several checkpoints, such as those of the tasks of a cluster, into one with the
// prefix into, and removes them. The data files are renamed, so all must be in one file system.
// Each tensor must be in one of the checkpoints, or in slices in several. If allowMissing is true,
// prefixes without a checkpoint are ignored, except if there is no checkpoint at all
// (InvalidArgument).
func Merge(prefixes []string, into string, allowMissing bool) error {
	return Store{}.Merge(prefixes, into, allowMissing)
}

// Merge is [Merge] in the store.
func (s Store) Merge(prefixes []string, into string, allowMissing bool) error {
	if err := s.files.MakeDir(fileio.Dir(into)); err != nil {
		return err
	}
	m := merger{store: s, entries: map[string]*pb.BundleEntryProto{}, shards: map[string]int{}}
	var found []string
	for _, prefix := range prefixes {
		if !s.files.Exists(IndexFile(prefix)) {
			if !allowMissing {
				return status.InvalidArgumentf("allow_missing_files was set to false and %s did not exist.NOT_FOUND: %s not found",
					prefix, prefix)
			}
			continue
		}
		found = append(found, prefix)
		if err := m.add(prefix); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		return status.InvalidArgumentf("At least one prefix checkpoint file must exist, but none existed.")
	}
	if err := m.commit(into); err != nil {
		return err
	}
	for _, prefix := range found {
		if fileio.Clean(prefix) != fileio.Clean(into) {
			_ = s.files.Remove(IndexFile(prefix)) // an index that stays has no data files
		}
	}
	return nil
}

// A merger collects the entries of several checkpoints.
type merger struct {
	store   Store
	header  *pb.BundleHeaderProto // of the first checkpoint
	entries map[string]*pb.BundleEntryProto
	files   []string        // new shard → data file
	shards  map[string]int  // data file → new shard
	meter   membudget.Meter // of files and shards
}

func (m *merger) add(prefix string) error {
	header, entries, err := m.store.readIndex(prefix)
	if err != nil {
		return in(IndexFile(prefix), err)
	}
	switch {
	case m.header == nil:
		m.header = header
	case header.GetEndianness() != m.header.GetEndianness():
		return status.InvalidArgumentf("Merging bundles with conflicting endianness; inputs corrupted?")
	case !proto.Equal(header.GetVersion(), m.header.GetVersion()):
		return status.InvalidArgumentf("Merging bundles with different format versions: merged %v vs. curr %v",
			m.header.GetVersion(), header.GetVersion())
	}
	for _, key := range sortedKeys(entries) {
		if err := m.addEntry(prefix, key, entries[key], int(header.GetNumShards())); err != nil {
			return in(IndexFile(prefix), err)
		}
	}
	return nil
}

func (m *merger) addEntry(prefix, key string, e *pb.BundleEntryProto, shards int) error {
	have := m.entries[key]
	switch {
	case have == nil:
		if e.GetShardId() < 0 || int(e.GetShardId()) >= shards {
			return status.DataLossf("entry %s is in shard %d of %d", key, e.GetShardId(), shards)
		}
		shard, err := m.shard(DataFile(prefix, int(e.GetShardId()), shards))
		if err != nil {
			return err
		}
		e.ShardId = int32(shard)
		m.entries[key] = e
		return nil
	case len(have.GetSlices()) == 0:
		return status.InvalidArgumentf("Duplicate tensor keyed by %s encountered, when merging prefix: %s", key, prefix)
	case len(e.GetSlices()) == 0:
		return status.Internalf("Duplicate tensor keyed by %s; attempting to merge in a non-slice bundle entry", key)
	}
	shape, err := pbconv.ShapeFromProto(e.GetShape())
	if err != nil {
		return err
	}
	if err := sameWhole(key, have, tensor.DType(e.GetDtype()), shape); err != nil {
		return err
	}
	have.Slices = append(have.Slices, e.GetSlices()...)
	return nil
}

// shard returns the new shard of a data file. Each entry of an index may be in a file of its own.
func (m *merger) shard(file string) (int, error) {
	at, ok := m.shards[file]
	if !ok {
		if !m.meter.Take(pieceSize + len(file)) {
			return 0, errNoMemory
		}
		at = len(m.files)
		m.files, m.shards[file] = append(m.files, file), at
	}
	return at, nil
}

// commit renames the data files and writes the index for all of them.
func (m *merger) commit(into string) error {
	shards := m.store.freeShards(into, max(len(m.files), 1))
	m.header.NumShards = int32(shards)
	index, err := m.store.newIndex(into, m.header, m.entries)
	if err != nil {
		return err
	}
	defer index.Abort()
	for i, file := range m.files {
		to := DataFile(into, i, shards)
		if err := m.store.files.Rename(file, to); err != nil {
			return err
		}
	}
	return m.store.replaceIndex(into, index, shards)
}
