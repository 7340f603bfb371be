package summary

import (
	"io"
	"iter"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// Reader reads an event file, which may still be written: after [io.EOF] later calls of Next return
// the events that were added since. Its methods must not be called concurrently.
type Reader struct {
	f      *fileio.File
	path   string
	offset int64 // of the next record
}

// Open opens an event file. The error has the code NotFound if it does not exist.
func Open(path string) (*Reader, error) {
	f, err := fileio.Files{}.Open(path)
	if err != nil {
		return nil, err
	}
	return &Reader{f: f, path: path}, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.f.Close() }

// Events iterates over the events from the current position to the end of the file, or to a record
// that is not complete yet. An error, with the code DataLoss for a damaged file, is the last pair,
// with a zero Event.
func (r *Reader) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		records, err := record.NewReader(io.NewSectionReader(r.f, r.offset, 1<<62), record.None)
		if err != nil {
			yield(Event{}, err)
			return
		}
		start := r.offset
		for {
			b, err := records.Next()
			if err != nil {
				if err := r.ending(err); err != nil {
					yield(Event{}, err)
				}
				return
			}
			r.offset = start + records.Offset()
			event, err := decode(b)
			if err != nil {
				yield(Event{}, status.Errorf(status.CodeOf(err), "%s: %w", r.path, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// Next returns the next event, or [io.EOF] if there is none or none that is complete. After io.EOF
// it may be called again, when the writer has added events.
func (r *Reader) Next() (Event, error) {
	for e, err := range r.Events() {
		return e, err
	}
	return Event{}, io.EOF
}

// ending converts the last error of reading: it returns nil at the end of the file, and within a
// record that is not complete yet.
func (r *Reader) ending(err error) error {
	if err == io.EOF || strings.HasPrefix(err.Error(), "truncated record") { //nolint:errorlint // io.EOF is never wrapped
		return nil
	}
	return status.DataLossf("%s: %w", r.path, err)
}

func decode(b []byte) (Event, error) {
	p := &pb.Event{}
	if err := proto.Unmarshal(b, p); err != nil {
		return Event{}, status.DataLossf("a record is not an Event: %w", err)
	}
	return eventFromProto(p)
}

// Files returns the paths of the event files in a folder, in order of their names, which contain
// the time of creation.
func Files(dir string) ([]string, error) {
	entries, err := fileio.Files{}.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if strings.Contains(e.Name(), ".tfevents.") && !e.IsDir() {
			files = append(files, fileio.Join(dir, e.Name()))
		}
	}
	slices.Sort(files)
	return files, nil
}
