package data

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/numeric/murmur"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// SnapshotDataset stores snapshots in element files, in one directory for each run.
func init() {
	registerStageOf(opdef.FilesWrite, "SnapshotDataset", "Creates a dataset that writes the elements of its input to files in the first iteration and reads the files in later ones.",
		[]string{"path: string"}, append(withSpec(), "compression: string = ''", "reader_path_prefix: string = ''", "writer_path_prefix: string = ''",
			"shard_size_bytes: int = 10737418240", "pending_snapshot_expiry_seconds: int = 86400", "num_reader_threads: int = 1",
			"reader_buffer_size: int = 1", "num_writer_threads: int = 1", "writer_buffer_size: int = 1", "shuffle_on_read: bool = false",
			"seed: int = 0", "seed2: int = 0", "mode: string = 'auto'", "snapshot_name: string = ''"), newLegacySnapshot)
}

type legacySnapshot struct {
	stage
	files                      fileio.Files
	hash                       string
	dir                        string // directory of the snapshot
	run                        string // name of the run; "" for a new one
	compression                string
	readerPrefix, writerPrefix string // prefixes of dir
	fileSize                   int64
	expiry                     time.Duration
	shuffled                   bool
	seed                       int64
	mode                       string
}

func newLegacySnapshot(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	path, err := scalar[string](n, ctx, "path")
	if err != nil {
		return nil, err
	}
	d := &legacySnapshot{
		stage: s, files: n.Files(), compression: n.Attrs.String("compression"), readerPrefix: n.Attrs.String("reader_path_prefix"), writerPrefix: n.Attrs.String("writer_path_prefix"),
		fileSize: int64(n.Attrs.Int("shard_size_bytes")), expiry: time.Duration(n.Attrs.Int("pending_snapshot_expiry_seconds")) * time.Second,
		shuffled: n.Attrs.Bool("shuffle_on_read"), seed: int64(n.Attrs.Int("seed") + n.Attrs.Int("seed2")), mode: n.Attrs.String("mode"),
	}
	if d.fileSize == -1 {
		d.fileSize = 10 << 30
	}
	if d.expiry == -time.Second {
		d.expiry = 24 * time.Hour
	}
	switch {
	case !slices.Contains([]string{"", string(record.GZIP), string(record.Snappy)}, d.compression):
		return nil, status.InvalidArgumentf("compression must be either '', 'GZIP' or 'SNAPPY'.")
	case d.expiry < time.Second:
		return nil, status.InvalidArgumentf("pending_snapshot_expiry_seconds must be at least 1 second.")
	case !slices.Contains([]string{"auto", "read", "write", "passthrough"}, d.mode):
		return nil, status.InvalidArgumentf("mode must be either 'auto', 'read', 'write', or 'passthrough'.")
	}
	g, err := writeGraph(ctx.Input(0), false)
	if err != nil {
		return nil, err
	}
	sum, err := fingerprint(g)
	if err != nil {
		return nil, err
	}
	for _, s := range []string{path, d.compression, d.readerPrefix, d.writerPrefix} {
		sum = combine(sum, murmur.Sum64(s))
	}
	d.hash = fmt.Sprintf("%016x", combine(sum, uint64(d.fileSize)))
	d.dir = fileio.Join(path, d.hash)
	if name := n.Attrs.String("snapshot_name"); name != "" {
		d.dir, d.run = fileio.Join(path, "custom-"+name), "custom"
	}
	return d, dumpGraph(n.Files().In(ctx.Context()), fileio.Join(path, d.hash+"-graph.pbtxt"), g)
}

// dumpGraph writes the graph of a snapshot's input in text format, for inspection.
func dumpGraph(files fileio.Files, file string, g *pb.GraphDef) error {
	// The text has up to 4 bytes for each byte of a constant, in a buffer that grows.
	const growth = 10
	membudget.MustTake(growth * int64(proto.Size(g)))
	text, err := prototext.MarshalOptions{Multiline: true}.Marshal(g)
	if err != nil {
		return err
	}
	return files.Write(file, text)
}

func (d *legacySnapshot) iterate(*run) (iterator, error) { return &legacyIterator{d: d}, nil }

// legacyIterator selects at its first request whether to read or to write.
type legacyIterator struct {
	d    *legacySnapshot
	at   iterator // nil before the first request
	mode snapshotMode
}

func (it *legacyIterator) next(r *run) (element, error) {
	if it.at == nil {
		m, err := readMetadata(it.d.files, it.d.dir)
		if err != nil {
			return nil, err
		}
		if it.mode, err = modeOf(it.d.mode, m, it.d.expiry); err != nil {
			return nil, err
		}
		if it.at, err = it.begin(r, m); err != nil {
			return nil, err
		}
	}
	return it.at.next(r)
}

func (it *legacyIterator) begin(r *run, m *pb.SnapshotMetadataRecord) (iterator, error) {
	d := it.d
	switch it.mode {
	case readSnapshot:
		return d.read(r, m)
	case writeSnapshot:
		src, err := d.stage.begin(r)
		if err != nil {
			return nil, err
		}
		w := &legacyWriter{source: src, d: d, run: rand.Int64()}
		w.cancelCleanup = r.cleanups.add(func() { _ = w.closeFile() })
		return w, nil
	default:
		return d.input.iterate(r)
	}
}

// state saves the mode and the state of the writer. A restored reader starts again, as in
// TensorFlow.
func (it *legacyIterator) state(a *archive) {
	started := it.at != nil
	a.bool(&started)
	if !started || a.err != nil {
		return
	}
	a.int((*int64)(&it.mode))
	if a.loading {
		m, err := readMetadata(it.d.files, it.d.dir)
		if err == nil {
			it.at, err = it.begin(a.run, m)
		}
		if err != nil {
			a.fail(err)
			return
		}
	}
	if it.mode != readSnapshot {
		it.at.state(a)
	}
}

// legacyWriter reads one element ahead, to detect the last element.
type legacyWriter struct {
	source
	d             *legacySnapshot
	run           int64 // name of the run, unless the snapshot has one
	started       bool
	finished      bool
	ahead         []element // next element, if there is one
	files         int64
	file          *elementWriter
	bytes         int64   // number of bytes written to file before compression
	ratio         float64 // length of a file relative to bytes; 0 if not measured
	cancelCleanup func()
}

func (w *legacyWriter) name() string {
	if w.d.run != "" {
		return w.d.run
	}
	return strconv.FormatUint(uint64(w.run), 16) //nolint:gosec // only the bits count
}

func (w *legacyWriter) dir() string { return fileio.Join(w.d.writerPrefix, w.d.dir, w.name()) }

func (w *legacyWriter) next(r *run) (element, error) {
	if !w.started {
		if err := w.begin(); err != nil {
			return nil, err
		}
		if err := w.fill(r); err != nil {
			return nil, err
		}
	}
	if len(w.ahead) == 0 {
		return nil, errEnd
	}
	e := w.ahead[0]
	w.ahead = nil
	if err := w.fill(r); err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

func (w *legacyWriter) begin() error {
	if err := w.d.files.MakeDirs(w.dir()); err != nil {
		return err
	}
	m := &pb.SnapshotMetadataRecord{GraphHash: w.d.hash, RunId: w.name(), CreationTimestamp: time.Now().UnixMicro(), Version: elementsVersion}
	if err := writeMetadata(w.d.files, w.d.dir, m, w.d.types); err != nil {
		return err
	}
	w.started = true
	return w.openFile()
}

func (w *legacyWriter) openFile() (err error) {
	w.file, err = createElements(w.d.files, partFile(w.dir(), w.files), w.d.compression)
	w.files++
	w.bytes = 0
	return err
}

func (w *legacyWriter) closeFile() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return f.close()
}

// fill reads the next element of the input and writes it.
func (w *legacyWriter) fill(r *run) error {
	if w.finished {
		return nil
	}
	e, err := w.input.next(r)
	if errors.Is(err, errEnd) {
		return w.finish()
	}
	if err != nil {
		return err
	}
	if err := w.write(e); err != nil {
		e.release()
		return err
	}
	w.ahead = append(w.ahead, e)
	return nil
}

func (w *legacyWriter) write(e element) error {
	if w.file == nil { // after a restore
		if err := w.openFile(); err != nil {
			return err
		}
	}
	for i := range e {
		w.bytes += e[i].ByteSize()
	}
	full, err := w.full()
	if err != nil {
		return err
	}
	if full {
		if err := w.closeFile(); err != nil {
			return err
		}
		if err := w.openFile(); err != nil {
			return err
		}
	}
	return w.file.write(e)
}

// full reports whether the next element starts another file. The compression ratio is measured
// once.
func (w *legacyWriter) full() (bool, error) {
	if w.ratio > 0 {
		return float64(w.bytes) > w.ratio*float64(w.d.fileSize), nil
	}
	if w.bytes <= w.d.fileSize {
		return false, nil
	}
	size, err := w.file.size()
	if err != nil {
		return false, err
	}
	w.ratio = float64(w.bytes) / float64(size)
	return size >= w.d.fileSize, nil
}

// finish marks the snapshot complete, unless another writer has started a run in the meantime.
func (w *legacyWriter) finish() error {
	w.finished = true
	w.cancelCleanup()
	if err := w.closeFile(); err != nil {
		return err
	}
	m, err := readMetadata(w.d.files, w.d.dir)
	if err != nil || m.GetRunId() != w.name() {
		return err
	}
	m.Finalized = true
	return writeMetadata(w.d.files, w.d.dir, m, w.d.types)
}

// state saves the element read ahead. Files written after a save stay and hold elements that are
// written again after a restore.
func (w *legacyWriter) state(a *archive) {
	a.int(&w.run)
	a.bool(&w.started)
	a.bool(&w.finished)
	a.elements(&w.ahead)
	w.source.state(a)
	if !a.loading || !w.started {
		return
	}
	found, err := w.d.files.Match(fileio.Join(w.dir(), "*"))
	if err != nil {
		a.fail(err)
		return
	}
	for _, file := range found {
		number, _, _ := strings.Cut(fileio.Base(file), ".")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			a.fail(status.Internalf("Could not parse: %s as uint64", number))
			return
		}
		w.files = max(w.files, n+1)
	}
}
