package data

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A saved dataset is a directory with the file snapshot.metadata, which names the directory of one
// run. The run has a directory for each shard with files of records. A record is one component of
// an element, a serialized TensorProto. This is version 2 of TensorFlow's format.
const (
	metadataFile = "snapshot.metadata"
	savedVersion = 2
	shardSuffix  = ".shard"
)

func writeMetadata(files fileio.Files, path string, m *pb.SnapshotMetadataRecord, types []tensor.DType) error {
	m.Dtype = m.Dtype[:0]
	for _, t := range types {
		m.Dtype = append(m.Dtype, pb.DataType(t))
	}
	b, err := pbconv.Marshal(m)
	if err != nil {
		return err
	}
	return files.Write(fileio.Join(path, metadataFile), b)
}

// readMetadata returns the metadata of a directory, or nil if it has none.
func readMetadata(files fileio.Files, path string) (*pb.SnapshotMetadataRecord, error) {
	file := fileio.Join(path, metadataFile)
	b, err := files.Read(file)
	if status.CodeOf(err) == status.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &pb.SnapshotMetadataRecord{}
	if err := protomem.Unmarshal(b, m); err != nil {
		return nil, status.DataLossf("Can't parse %s as binary proto", file)
	}
	return m, nil
}

// checkVersion returns an error if the version of the format is not supported.
func checkVersion(m *pb.SnapshotMetadataRecord) error {
	if m.GetVersion() != savedVersion {
		return status.InvalidArgumentf("Snapshot reader version: %d is not supported.", m.GetVersion())
	}
	return nil
}

func shardDir(run string, shard int64) string {
	return fileio.Join(run, fmt.Sprintf("%08d%s", shard, shardSuffix))
}

func partFile(shard string, part int64) string {
	return fileio.Join(shard, fmt.Sprintf("%08d.snapshot", part))
}

// savedWriter writes the elements of one run. It is used by one goroutine.
type savedWriter struct {
	files       fileio.Files
	path, run   string // directory of the dataset, and name of the run's directory
	hash        string // fingerprint of the dataset, for snapshots
	compression record.Compression
	part        int64                // number of the part of each shard that is being written
	shards      map[int64]*shardFile // open files by shard
}

type shardFile struct {
	file *fileio.File
	to   *record.Writer
}

// begin creates the directory of the run and marks the run incomplete.
func (w *savedWriter) begin(types []tensor.DType) error {
	dir := fileio.Join(w.path, w.run)
	if err := w.files.MakeDirs(dir); err != nil {
		return err
	}
	return w.note(types, 0, false)
}

// note writes the metadata: the number of elements and whether the run is complete.
func (w *savedWriter) note(types []tensor.DType, elements int64, finalized bool) error {
	return writeMetadata(w.files, w.path, &pb.SnapshotMetadataRecord{
		GraphHash: w.hash, RunId: w.run, CreationTimestamp: time.Now().UnixMicro(), Version: savedVersion, NumElements: elements, Finalized: finalized,
	}, types)
}

func (w *savedWriter) write(shard int64, e element) error {
	s, err := w.shard(shard)
	if err != nil {
		return err
	}
	for i := range e {
		p, err := pbconv.TensorToProto(&e[i])
		if err != nil {
			return err
		}
		b, err := pbconv.Marshal(p)
		if err != nil {
			return err
		}
		if err := s.to.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// shard returns the open file of a shard, or creates one.
func (w *savedWriter) shard(i int64) (*shardFile, error) {
	if s := w.shards[i]; s != nil {
		return s, nil
	}
	dir := shardDir(fileio.Join(w.path, w.run), i)
	if err := w.files.MakeDirs(dir); err != nil {
		return nil, err
	}
	name := partFile(dir, w.part)
	file, err := w.files.Truncate(name)
	if err != nil {
		return nil, err
	}
	to, err := record.NewWriter(file, w.compression)
	if err != nil {
		file.Close()
		return nil, err
	}
	if w.shards == nil {
		w.shards = map[int64]*shardFile{}
	}
	w.shards[i] = &shardFile{file, to}
	return w.shards[i], nil
}

// close closes the open files. Further elements are written to new files.
func (w *savedWriter) close() error {
	var first error
	for _, s := range w.shards {
		err := s.to.Close()
		if e := s.file.Close(); err == nil {
			err = e
		}
		if err != nil && first == nil {
			first = err
		}
	}
	w.shards = nil
	w.part++
	return first
}

// shardDirDataset contains the elements of one shard.
type shardDirDataset struct {
	spec
	files       fileio.Files
	dir         string
	compression string
	start       int64 // number of elements to skip
}

// shardsOf returns the datasets of all shards of a run, in order. The first start elements, in
// round-robin order, are skipped.
func shardsOf(files fileio.Files, s spec, path, run, compression string, start int64) ([]element, error) {
	dirs, err := files.Match(fileio.Join(path, run, "*"+shardSuffix))
	if err != nil {
		return nil, err
	}
	slices.Sort(dirs)
	out := membudget.Make[element](len(dirs))
	for i, dir := range dirs {
		skip := start / int64(len(dirs))
		if start%int64(len(dirs)) > int64(i) {
			skip++
		}
		d := &shardDirDataset{s, files, dir, compression, skip}
		out[i] = element{wrap(d)}
	}
	return out, nil
}

func (d *shardDirDataset) cardinality() int64 { return unknown }

func (d *shardDirDataset) iterate(r *run) (iterator, error) {
	it := &shardDirIterator{d: d, i: d.start}
	it.cancelCleanup = r.cleanups.add(it.close)
	return it, nil
}

type shardDirIterator struct {
	d             *shardDirDataset
	part, i       int64       // index of the current part, and of the next element in it
	file          *partReader // nil between parts
	cancelCleanup func()      // cancels the cleanup that closes the file
}

func (it *shardDirIterator) next(r *run) (element, error) {
	for {
		if it.file == nil {
			if err := it.open(r); err != nil {
				return nil, err
			}
		}
		e, err := it.file.read(r)
		if err == nil {
			it.i++
			return e, nil
		}
		if !errors.Is(err, errEnd) {
			return nil, err
		}
		it.close()
		it.part, it.i = it.part+1, 0
	}
}

// open opens the current part. It returns errEnd if the part does not exist.
func (it *shardDirIterator) open(r *run) (err error) {
	name := partFile(it.d.dir, it.part)
	files := it.d.files.In(r.ctx.Context())
	if _, err := files.Stat(name); status.CodeOf(err) == status.NotFound {
		it.cancelCleanup()
		return errEnd
	}
	it.file, err = openPart(r, files, name, it.d.compression, it.d.types, it.i)
	return err
}

func (it *shardDirIterator) close() {
	if it.file != nil {
		it.file.close()
		it.file = nil
	}
}

func (it *shardDirIterator) state(a *archive) {
	a.int(&it.part)
	a.int(&it.i)
	if it.part < 0 || it.i < 0 {
		a.fail(status.InvalidArgumentf("the saved state of the iterator has an invalid part or index: %d, %d", it.part, it.i))
	}
}

// formatRunID formats the name of a run as TensorFlow does.
func formatRunID(n uint64) string { return strconv.FormatUint(n, 10) }

// partReader reads the elements of a file with a record for each component.
type partReader struct {
	file  *fileio.File
	from  recordReader
	types []tensor.DType
}

// openPart opens an element file and skips its first skip elements, which must exist.
func openPart(r *run, files fileio.Files, name, compression string, types []tensor.DType, skip int64) (*partReader, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	from, err := openRecords(file, compression)
	if err != nil {
		file.Close()
		return nil, err
	}
	p := &partReader{file, from, types}
	for range skip { // after a restore
		e, err := p.read(r)
		if err != nil {
			p.close()
			return nil, cmpError(nil, "the saved state of the iterator does not match the dataset")
		}
		e.release()
	}
	return p, nil
}

func (p *partReader) read(r *run) (element, error) {
	p.file.Use(r.ctx.Context())
	e := element(membudget.MakeCap[tensor.Tensor](len(p.types)))
	for range p.types {
		b, err := p.from.record()
		if err != nil {
			e.release()
			return nil, err
		}
		m := &pb.TensorProto{}
		membudget.MustTake(int64(len(b))) // of the copy
		if err := protomem.Unmarshal([]byte(b), m); err != nil {
			e.release()
			return nil, status.DataLossf("Unable to parse tensor from stored proto in file: %s", p.file.Name())
		}
		t, err := pbconv.TensorFromProto(m)
		if err != nil {
			e.release()
			return nil, err
		}
		e = append(e, t)
	}
	return e, nil
}

func (p *partReader) close() { p.file.Close() }
