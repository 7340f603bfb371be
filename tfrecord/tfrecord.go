// Package tfrecord reads and writes TFRecord files, in which TensorFlow programs store examples. A
// file is a sequence of byte strings with checksums. It may be compressed as a whole.
//
//	w, err := tfrecord.Create("/data/train.tfrecord", tfrecord.GZIP)
//	if err != nil {
//		return err
//	}
//	defer w.Abort()
//	for _, example := range examples {
//		if err := w.Write(example); err != nil {
//			return err
//		}
//	}
//	return w.Close()
//
// A record is usually a serialized tensorflow.Example, which op.ParseExample parses.
// op.TFRecordDataset makes a dataset from such files.
package tfrecord

import (
	"errors"
	"io"
	"iter"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/status"
)

// Compression is the compression of a file.
type Compression string

// The compressions, with TensorFlow's names.
const (
	None Compression = ""
	ZLIB Compression = "ZLIB"
	GZIP Compression = "GZIP"
)

// Reader reads records. Its methods must not be called concurrently.
type Reader struct {
	r     *record.Reader
	name  string    // path of the file, for errors; may be empty
	close io.Closer // nil if the caller owns the input
}

// Open opens a file. The error has the code NotFound if it does not exist, and InvalidArgument for
// an unknown compression.
func Open(path string, c Compression) (*Reader, error) {
	f, err := fileio.Files{}.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := NewReader(f, c)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.name, r.close = path, f
	return r, nil
}

// NewReader returns a reader of the records in r. Close does not close r.
func NewReader(r io.Reader, c Compression) (*Reader, error) {
	records, err := record.NewReader(r, record.Compression(c))
	if err != nil {
		return nil, err
	}
	return &Reader{r: records}, nil
}

// Next returns the next record, which is valid until the next call, or [io.EOF] at the end. The
// error has the code DataLoss if the file is damaged or ends within a record.
func (r *Reader) Next() ([]byte, error) {
	b, err := r.r.Next()
	if err == nil || errors.Is(err, io.EOF) || r.name == "" {
		return b, err
	}
	return nil, status.Errorf(status.CodeOf(err), "%s: %w", r.name, err)
}

// All iterates over the records from the current position to the end of the file. A record is valid
// until the next iteration. An error is the last pair, with a nil record.
func (r *Reader) All() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for {
			b, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Close closes the file of a reader that [Open] returned.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close.Close()
}

// Writer writes records. Its methods must not be called concurrently.
type Writer struct {
	w *record.Writer
	f *fileio.Temp // nil if the caller owns the output
}

// Create creates a file. It appears complete when [Writer.Close] is called. The caller must call
// Close or [Writer.Abort].
func Create(path string, c Compression) (*Writer, error) {
	f, err := fileio.Files{}.Create(path)
	if err != nil {
		return nil, err
	}
	w, err := NewWriter(f, c)
	if err != nil {
		f.Abort()
		return nil, err
	}
	w.f = f
	return w, nil
}

// NewWriter returns a writer of records to w. The caller must call [Writer.Close], which does not
// close w.
func NewWriter(w io.Writer, c Compression) (*Writer, error) {
	records, err := record.NewWriter(w, record.Compression(c))
	if err != nil {
		return nil, err
	}
	return &Writer{w: records}, nil
}

// Write writes a record.
func (w *Writer) Write(b []byte) error { return w.w.Write(b) }

// Flush writes buffered data to the output, so that a reader of the output sees all records.
func (w *Writer) Flush() error { return w.w.Flush() }

// Close completes the output. A file of [Create] appears under its path and is on disk when Close
// returns.
func (w *Writer) Close() error {
	if err := w.w.Close(); err != nil {
		return err
	}
	if w.f == nil {
		return nil
	}
	return w.f.Commit()
}

// Abort discards a file of [Create]. After Close it does nothing.
func (w *Writer) Abort() {
	if w.f != nil {
		w.f.Abort()
	}
}
