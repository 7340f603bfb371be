package data

import (
	"slices"
	"strconv"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/numeric/murmur"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A snapshot is a saved dataset in a directory named after the fingerprint of its input. An equal
// dataset in another program or run reads it.
func init() {
	registerStageOf(opdef.FilesWrite, "SnapshotDatasetV2", "Creates a dataset that writes the elements of its input to files in the first iteration and reads the files in later ones.",
		[]string{"path: string", "reader_func_other_args: Treader_func_args", "shard_func_other_args: Tshard_func_args"},
		append(withSpec(), "compression: string = ''", "reader_prefix: string = ''", "writer_prefix: string = ''", "hash_valid: bool = false",
			"hash: int = 0", "reader_func: func", "shard_func: func", "Treader_func_args: list(type) >= 0", "Tshard_func_args: list(type) >= 0",
			metadata), newSnapshot)
	register(opdef.Def{
		Name: "SnapshotDatasetReader", Doc: "Creates a dataset of the elements of one shard of a saved dataset.",
		In: []string{"shard_dir: string", "start_index: int64"}, Attrs: append(withSpec(), "compression: string = ''", "version: int"), Class: opdef.FilesRead,
	}, func(n *node, ctx *kernel.Context) (dataset, error) {
		if v := n.Attrs.Int("version"); v != savedVersion {
			return nil, status.InvalidArgumentf("Snapshot reader version: %d is not supported.", v)
		}
		d := &shardDirDataset{spec: n.spec(), files: n.Files(), compression: n.Attrs.String("compression")}
		var err error
		if d.dir, err = scalar[string](n, ctx, "shard_dir"); err != nil {
			return nil, err
		}
		d.start, err = scalar[int64](n, ctx, "start_index")
		return d, err
	})
	register(opdef.Def{
		Name: "SnapshotNestedDatasetReader", Doc: "Creates a dataset whose elements are datasets.",
		In: []string{"inputs: N * variant"}, Attrs: append(withSpec(), "N: int >= 1"),
	}, func(n *node, ctx *kernel.Context) (dataset, error) {
		all, err := n.inputs(ctx, "inputs")
		d := &listDataset{spec: n.spec()}
		for e := range slices.Chunk(all, 1) {
			d.all = append(d.all, e)
		}
		return d, err
	})
}

type snapshotDataset struct {
	stage
	files                      fileio.Files
	hash                       uint64
	dir                        string // directory of the snapshot, relative to the prefixes
	compression                string
	readerPrefix, writerPrefix string // prefixes of dir
	join, shard                *captured
}

func newSnapshot(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	path, err := scalar[string](n, ctx, "path")
	if err != nil {
		return nil, err
	}
	d := &snapshotDataset{
		stage: s, files: n.Files(), compression: n.Attrs.String("compression"), readerPrefix: n.Attrs.String("reader_prefix"), writerPrefix: n.Attrs.String("writer_prefix"),
	}
	if d.compression == "AUTO" {
		d.compression = string(record.Snappy)
	}
	d.hash = uint64(int64(n.Attrs.Int("hash"))) //nolint:gosec // only the bits count
	if !n.Attrs.Bool("hash_valid") {
		if d.hash, err = hashOf(ctx.Input(0)); err != nil {
			return nil, err
		}
		d.hash = combine(d.hash, murmur.Sum64(d.compression))
	}
	d.dir = fileio.Join(path, strconv.FormatUint(d.hash, 10))
	if d.join, err = n.function(ctx, "reader_func", "reader_func_other_args"); err != nil {
		return nil, err
	}
	d.shard, err = n.function(ctx, "shard_func", "shard_func_other_args")
	return d, err
}

// hashOf returns the fingerprint of a dataset.
func hashOf(t *tensor.Tensor) (uint64, error) {
	g, err := writeGraph(t, false)
	if err != nil {
		return 0, err
	}
	return fingerprint(g)
}

func (d *snapshotDataset) iterate(*run) (iterator, error) {
	return &snapshotIterator{d: d}, d.files.MakeDirs(fileio.Join(d.writerPrefix, d.dir))
}

// snapshotMode is the mode of a snapshot's iterator, with TensorFlow's values.
type snapshotMode int64

const (
	readSnapshot snapshotMode = iota
	writeSnapshot
	passThroughSnapshot // pass elements through, because another process is writing
)

// modeOf returns the mode for a snapshot with metadata m. If the requested mode is "auto" or "",
// the metadata determine it. An incomplete snapshot older than expiry is considered abandoned.
func modeOf(requested string, m *pb.SnapshotMetadataRecord, expiry time.Duration) (snapshotMode, error) {
	switch {
	case requested == "read" && m == nil:
		return 0, status.NotFoundf("Metadata file does not exist.")
	case requested == "read":
		return readSnapshot, nil
	case requested == "write":
		return writeSnapshot, nil
	case requested == "passthrough":
		return passThroughSnapshot, nil
	case m == nil:
		return writeSnapshot, nil
	case m.GetFinalized():
		return readSnapshot, nil
	case m.GetCreationTimestamp() >= time.Now().Add(-expiry).UnixMicro():
		return passThroughSnapshot, nil
	}
	return writeSnapshot, nil
}

// snapshotIterator selects at its first request whether to read or to write.
type snapshotIterator struct {
	d    *snapshotDataset
	at   iterator // nil before the first request
	mode snapshotMode
	i    int64 // number of elements requested
}

func (it *snapshotIterator) next(r *run) (element, error) {
	if it.at == nil {
		m, err := readMetadata(it.d.files, fileio.Join(it.d.readerPrefix, it.d.dir))
		if err != nil {
			return nil, err
		}
		if it.mode, err = modeOf("", m, 0); err != nil {
			return nil, err
		}
		if it.at, err = it.begin(r, m); err != nil {
			return nil, err
		}
	}
	it.i++
	return it.at.next(r)
}

func (it *snapshotIterator) begin(r *run, m *pb.SnapshotMetadataRecord) (iterator, error) {
	d := it.d
	switch it.mode {
	case readSnapshot:
		if err := checkVersion(m); err != nil {
			return nil, err
		}
		shards, err := shardsOf(d.files, *d.elementSpec(), fileio.Join(d.readerPrefix, d.dir), m.GetRunId(), d.compression, it.i)
		if err != nil {
			return nil, err
		}
		all := &listDataset{spec: spec{[]tensor.DType{tensor.Variant}, []tensor.PartialShape{tensor.MakePartial()}}, all: shards}
		return d.join.iterate(r, element{wrap(all)})
	case writeSnapshot:
		s := &savingDataset{
			stage: d.stage, files: d.files, path: fileio.Join(d.writerPrefix, d.dir), hash: strconv.FormatUint(d.hash, 10),
			compression: record.Compression(d.compression), shard: d.shard,
		}
		return s.iterate(r)
	default:
		return d.input.iterate(r)
	}
}

func (it *snapshotIterator) state(a *archive) {
	begun := it.at != nil
	a.bool(&begun)
	if !begun || a.err != nil {
		return
	}
	a.int((*int64)(&it.mode))
	a.int(&it.i)
	hash := int64(it.d.hash) //nolint:gosec // only the bits count
	a.int(&hash)
	if a.loading {
		if uint64(hash) != it.d.hash { //nolint:gosec // only the bits count
			a.fail(status.DataLossf("Dataset has changed while restoring from the checkpoint. Old hash directory: %s; new hash directory: %s",
				strconv.FormatUint(uint64(hash), 10), it.d.dir)) //nolint:gosec // only the bits count
			return
		}
		m, err := readMetadata(it.d.files, fileio.Join(it.d.readerPrefix, it.d.dir))
		if err == nil && m == nil {
			err = status.DataLossf("Snapshot metadata file in %s does not exist any more.", it.d.dir)
		}
		if err == nil {
			it.at, err = it.begin(a.run, m)
		}
		if err != nil {
			a.fail(err)
			return
		}
	}
	if it.mode != readSnapshot { // a reader continues at its position
		it.at.state(a)
	}
}
