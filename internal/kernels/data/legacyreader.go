package data

import (
	"errors"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// read returns an iterator over the files of the run in m.
func (d *legacySnapshot) read(r *run, m *pb.SnapshotMetadataRecord) (iterator, error) {
	run := d.run
	if run == "" {
		run = m.GetRunId()
	}
	switch {
	case run == "":
		return nil, status.NotFoundf("Could not find a valid snapshot to read.")
	case m.GetVersion() != elementsVersion:
		return nil, status.InvalidArgumentf("Snapshot reader version: %d is not supported.", m.GetVersion())
	case len(m.GetDtype()) != len(d.types):
		return nil, status.Internalf("Expected number of dtypes: %d but number in snapshot: %d", len(d.types), len(m.GetDtype()))
	}
	for i, t := range m.GetDtype() {
		if t != pb.DataType(d.types[i]) {
			return nil, status.Internalf("Type: %d doesn't match. Snapshot: %d; dataset: %d", i, t, d.types[i])
		}
	}
	dir := fileio.Join(d.dir, run)
	found, err := d.files.In(r.ctx.Context()).Match(fileio.Join(dir, "*"))
	if err != nil {
		return nil, err
	}
	it := &legacyReader{d: d, files: found}
	if len(it.files) == 0 {
		return nil, status.NotFoundf("Could not find any files in dir: %s", dir)
	}
	if d.shuffled {
		seed := uint64(d.seed) //nolint:gosec // only the bits count
		if seed == 0 {
			seed = rand.Uint64()
		}
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(it.files), func(i, j int) { it.files[i], it.files[j] = it.files[j], it.files[i] })
	}
	it.cancelCleanup = r.cleanups.add(it.close)
	return it, nil
}

type legacyReader struct {
	d             *legacySnapshot
	files         []string // files that have not been opened
	from          *elementReader
	cancelCleanup func()
}

func (it *legacyReader) next(r *run) (element, error) {
	for {
		if it.from == nil {
			if len(it.files) == 0 {
				it.cancelCleanup()
				return nil, errEnd
			}
			var err error
			if it.from, err = openElements(it.d.files, fileio.Join(it.d.readerPrefix, it.files[0]), it.d.compression, it.d.types); err != nil {
				return nil, err
			}
			it.files = it.files[1:]
		}
		it.from.file.Use(r.ctx.Context())
		e, err := it.from.read()
		if !errors.Is(err, errEnd) {
			return e, err
		}
		it.close()
	}
}

func (it *legacyReader) close() {
	if it.from != nil {
		it.from.close()
		it.from = nil
	}
}

// state does nothing: a restored reader starts again.
func (it *legacyReader) state(*archive) {}
