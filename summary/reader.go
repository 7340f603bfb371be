package summary

import (
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// Reader reads an event file, also one that is still being written: after io.EOF later calls of
// Next return the events that have come since.
type Reader struct {
	f      *os.File
	path   string
	offset int64 // of the next record
}

// Open opens an event file.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileio.Error(path, err)
	}
	return &Reader{f: f, path: path}, nil
}

// Close closes the file.
func (r *Reader) Close() error { return fileio.Error(r.path, r.f.Close()) }

// Events returns the events from the present position to the end. It stops at the first error, of
// which *err tells, and without one at a record that is not finished.
func (r *Reader) Events(err *error) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		records, e := record.NewReader(io.NewSectionReader(r.f, r.offset, 1<<62), record.None)
		if e != nil {
			*err = e
			return
		}
		from := r.offset
		for {
			b, e := records.Next()
			if e != nil {
				*err = r.ending(e)
				return
			}
			r.offset = from + records.Offset()
			event, e := decode(b)
			if e != nil {
				*err = status.Errorf(status.CodeOf(e), "%s: %w", r.path, e)
				return
			}
			if !yield(event) {
				return
			}
		}
	}
}

// Next returns the next event; io.EOF where there is none, or none that is finished.
func (r *Reader) Next() (Event, error) {
	var err error
	for e := range r.Events(&err) {
		return e, nil
	}
	if err == nil {
		err = io.EOF
	}
	return Event{}, err
}

// ending returns what the last error of reading means: nothing at the end of the file, and nothing
// where a writer is in the middle of a record.
func (r *Reader) ending(err error) error {
	if err == io.EOF || strings.HasPrefix(err.Error(), "truncated record") { //nolint:errorlint // io.EOF is never wrapped
		return nil
	}
	return status.DataLossf("%s: %w", r.path, err)
}

func decode(b []byte) (Event, error) {
	p := &pb.Event{}
	if err := proto.Unmarshal(b, p); err != nil {
		return Event{}, status.DataLossf("a record is no event: %w", err)
	}
	return eventFromProto(p)
}

// Files returns the event files in a folder, in order of their names, which begin with the time.
func Files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fileio.Error(dir, err)
	}
	var files []string
	for _, e := range entries {
		if strings.Contains(e.Name(), ".tfevents.") && !e.IsDir() {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(files)
	return files, nil
}
