// Package tfrecord reads and writes files of records (TFRecord), the form in which TensorFlow's
// programs keep their examples: a sequence of byte strings with checksums, plain or compressed as a
// whole.
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
// A record is mostly a serialized tensorflow.Example, which op.ParseExample understands; datasets
// of such files are made with op.TFRecordDataset.
package tfrecord

import (
	"errors"
	"io"
	"iter"
	"os"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/status"
)

// Compression is how a file is compressed.
type Compression string

// The compressions, by the names that TensorFlow has for them.
const (
	None Compression = ""
	ZLIB Compression = "ZLIB"
	GZIP Compression = "GZIP"
)

// Reader reads records.
type Reader struct {
	r     *record.Reader
	name  string    // of the file, for errors
	close io.Closer // nil if the caller owns what is read
}

// Open opens a file.
func Open(path string, c Compression) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fileio.Error(path, err)
	}
	r, err := NewReader(f, c)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.name, r.close = path, f
	return r, nil
}

// NewReader returns a reader of the records in r.
func NewReader(r io.Reader, c Compression) (*Reader, error) {
	records, err := record.NewReader(r, record.Compression(c))
	if err != nil {
		return nil, err
	}
	return &Reader{r: records}, nil
}

// Next returns the next record, which is valid until the next call; io.EOF at the end. An error of
// code DataLoss says that the file is damaged or ends within a record.
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

// Close closes a file that Open opened.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	return fileio.Error(r.name, r.close.Close())
}

// Writer writes records.
type Writer struct {
	w *record.Writer
	f *fileio.Temp // nil if the caller owns what is written to
}

// Create begins a file, which appears whole with Close or, after Abort, not at all.
func Create(path string, c Compression) (*Writer, error) {
	f, err := fileio.Create(path)
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

// NewWriter returns a writer of records to w. Close must be called, which does not close w.
func NewWriter(w io.Writer, c Compression) (*Writer, error) {
	records, err := record.NewWriter(w, record.Compression(c))
	if err != nil {
		return nil, err
	}
	return &Writer{w: records}, nil
}

// Write writes a record.
func (w *Writer) Write(b []byte) error { return w.w.Write(b) }

// Flush passes on what was written, so that a reader can see it.
func (w *Writer) Flush() error { return w.w.Flush() }

// Close writes the end and, for a file, puts it in place and waits until it is on disk.
func (w *Writer) Close() error {
	if err := w.w.Close(); err != nil {
		return err
	}
	if w.f == nil {
		return nil
	}
	return w.f.Commit()
}

// Abort removes a file that was not closed; after Close it does nothing.
func (w *Writer) Abort() {
	if w.f != nil {
		w.f.Abort()
	}
}
