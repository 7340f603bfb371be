package data

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A distributed snapshot is written by several workers. It is a directory with chunks, files
// "chunks/chunk_STREAM_NUMBER_ELEMENTS" that appear one by one, and finally a file DONE or, if the
// writers failed, ERROR.
const (
	doneFile  = "DONE"
	errorFile = "ERROR"
	chunksDir = "chunks"
)

func init() {
	register(opdef.Def{
		Name: "ListSnapshotChunksDataset",
		Doc:  "Creates a dataset of the names of the chunks of a distributed snapshot. It waits for chunks that are not written yet.",
		In:   []string{"snapshot_path: string"}, Attrs: withSpec(), Stateful: true, Class: opdef.FilesRead, Shape: oneName,
	}, func(n *node, ctx *kernel.Context) (dataset, error) {
		path, err := scalar[string](n, ctx, "snapshot_path")
		if err == nil && path == "" {
			err = status.InvalidArgumentf("snapshot_path is required to list snapshot chunks.")
		}
		return &chunkNamesDataset{n.spec(), n.Files(), path}, err
	})
	register(opdef.Def{
		Name: "SnapshotChunkDataset", Doc: "Creates a dataset of the elements of a chunk of a distributed snapshot.",
		In: []string{"chunk_file: string"}, Attrs: append(withSpec(), "compression: string = ''"), Class: opdef.FilesRead, Shape: oneName,
	}, func(n *node, ctx *kernel.Context) (dataset, error) {
		name, err := scalar[string](n, ctx, "chunk_file")
		return &chunkDataset{n.spec(), n.Files(), name, n.Attrs.String("compression")}, err
	})
}

func oneName(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRank(c.In[0], 0); err != nil {
		return err
	}
	return opdef.ScalarShape(c)
}

type chunkNamesDataset struct {
	spec
	files fileio.Files
	path  string
}

func (d *chunkNamesDataset) cardinality() int64 {
	if done, err := d.done(); err != nil || !done {
		return unknown
	}
	all, err := d.chunks()
	if err != nil {
		return unknown
	}
	return int64(len(all))
}

// done reports whether the snapshot is complete. It returns the error of a failed snapshot.
func (d *chunkNamesDataset) done() (bool, error) {
	switch text, err := d.files.Read(fileio.Join(d.path, errorFile)); {
	case err == nil:
		return false, parseStatusProto(string(text))
	case status.CodeOf(err) != status.NotFound:
		return false, err
	}
	return d.files.Exists(fileio.Join(d.path, doneFile)), nil
}

// parseStatusProto returns the error in a text-format StatusProto.
func parseStatusProto(text string) error {
	code, message := status.Unknown, ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch value = strings.TrimSpace(value); key {
		case "code":
			if c, ok := pb.Code_value[value]; ok {
				code = status.Code(c)
			}
		case "message":
			if s, err := strconv.Unquote(value); err == nil {
				message = s
			}
		}
	}
	return status.Errorf(code, "%s", message)
}

// chunks returns the names of the existing chunks in reading order.
func (d *chunkNamesDataset) chunks() ([]string, error) {
	dir := fileio.Join(d.path, chunksDir)
	entries, err := d.files.ReadDir(dir)
	if err != nil && status.CodeOf(err) != status.NotFound {
		return nil, err
	}
	names := membudget.Make[string](len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := chunkPlace(a), chunkPlace(b)
		return cmp.Or(cmp.Compare(x[1], y[1]), cmp.Compare(x[0], y[0]), strings.Compare(a, b))
	})
	return names, nil
}

// chunkPlace returns the stream and the number of a chunk, or zeros if name is not a chunk's.
func chunkPlace(name string) (at [2]int64) {
	parts := strings.Split(name, "_")
	if len(parts) != 4 || parts[0] != "chunk" {
		return at
	}
	for i := range at {
		n, err := strconv.ParseInt(parts[1+i], 10, 64)
		if err != nil {
			return [2]int64{}
		}
		at[i] = n
	}
	return at
}

func (d *chunkNamesDataset) iterate(*run) (iterator, error) {
	return &chunkNamesIterator{d: d, read: map[string]bool{}}, nil
}

type chunkNamesIterator struct {
	d       *chunkNamesDataset
	read    map[string]bool
	meter   membudget.Meter // of read
	pending []string        // chunks found and not returned
	done    bool            // the snapshot is complete
}

// Minimum and maximum intervals between checks of an incomplete snapshot.
const (
	firstLook = time.Millisecond
	lastLook  = time.Second
)

func (it *chunkNamesIterator) next(r *run) (element, error) {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if len(it.pending) > 0 {
			name := it.pending[0]
			it.meter.MustTakeEntry(0)
			it.pending, it.read[name] = it.pending[1:], true
			return element{tensor.Scalar(fileio.Join(it.d.path, chunksDir, name))}, nil
		}
		if it.done {
			return nil, errEnd
		}
		if err := it.look(); err != nil {
			return nil, err
		}
		if len(it.pending) > 0 || it.done {
			continue
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.ctx.Context().Done():
			timer.Stop()
			return nil, r.cancelled()
		}
	}
}

// look searches for new chunks. It checks first whether the snapshot is complete, because then no
// chunk can appear after the search.
func (it *chunkNamesIterator) look() error {
	done, err := it.d.done()
	if err != nil {
		return err
	}
	all, err := it.d.chunks()
	if err != nil {
		return err
	}
	it.done = done
	it.pending = slices.DeleteFunc(all, func(name string) bool { return it.read[name] })
	return nil
}

func (it *chunkNamesIterator) state(a *archive) {
	names := element{tensor.Vector(slices.Sorted(maps.Keys(it.read))...)}
	a.element(&names)
	if !a.loading || a.err != nil {
		return
	}
	if len(names) != 1 || names[0].DType() != tensor.String {
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
		return
	}
	it.read, it.pending, it.done = map[string]bool{}, nil, false
	for _, name := range tensor.Values[string](&names[0]) {
		it.meter.MustTakeEntry(0)
		it.read[name] = true
	}
}

type chunkDataset struct {
	spec
	files       fileio.Files
	name        string
	compression string
}

func (d *chunkDataset) cardinality() int64 { return unknown }

func (d *chunkDataset) iterate(r *run) (iterator, error) {
	it := &chunkIterator{d: d}
	it.cancelCleanup = r.cleanups.add(it.close)
	return it, nil
}

type chunkIterator struct {
	d             *chunkDataset
	i             int64 // index of the next element
	file          *partReader
	cancelCleanup func() // cancels the cleanup that closes the file
}

func (it *chunkIterator) next(r *run) (element, error) {
	if it.file == nil {
		var err error
		if it.file, err = openPart(r, it.d.files.In(r.ctx.Context()), it.d.name, it.d.compression, it.d.types, it.i); err != nil {
			return nil, err
		}
	}
	e, err := it.file.read(r)
	switch {
	case err == nil:
		it.i++
	case errors.Is(err, errEnd):
		it.cancelCleanup()
		it.close()
	default:
		err = status.Errorf(status.CodeOf(err), "Failed to read tf.data snapshot file: %s: %w", it.d.name, err)
	}
	return e, err
}

func (it *chunkIterator) close() {
	if it.file != nil {
		it.file.close()
		it.file = nil
	}
}

func (it *chunkIterator) state(a *archive) {
	a.int(&it.i)
	if it.i < 0 {
		a.fail(status.InvalidArgumentf("the saved state of the iterator has an invalid index: %d", it.i))
	}
	if a.loading {
		it.close()
	}
}
