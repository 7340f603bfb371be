package record

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/weft-ml/weft/internal/format/crc32c"
)

// Writer writes records. After an error of the underlying writer all later calls return it. The
// methods must not be called concurrently.
type Writer struct {
	buf    *bufio.Writer
	packed compressor // writes to buf; nil without compression
	out    io.Writer  // buf or packed
}

// NewWriter returns a writer of records to w.
func NewWriter(w io.Writer, c Compression) (*Writer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	buf := bufio.NewWriterSize(w, 64<<10)
	out := &Writer{buf: buf, packed: c.writer(buf), out: buf}
	if out.packed != nil {
		out.out = out.packed
	}
	return out, nil
}

// Write appends a record.
func (w *Writer) Write(b []byte) error {
	var head [12]byte
	binary.LittleEndian.PutUint64(head[:], uint64(len(b)))
	binary.LittleEndian.PutUint32(head[8:], crc32c.Mask(crc32c.Sum(head[:8])))
	if _, err := w.out.Write(head[:]); err != nil {
		return err
	}
	if _, err := w.out.Write(b); err != nil {
		return err
	}
	_, err := w.out.Write(binary.LittleEndian.AppendUint32(nil, crc32c.Mask(crc32c.Sum(b))))
	return err
}

// Flush writes all buffered data to the underlying writer.
func (w *Writer) Flush() error {
	if w.packed != nil {
		if err := w.packed.Flush(); err != nil {
			return err
		}
	}
	return w.buf.Flush()
}

// Close completes the file. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.packed != nil {
		if err := w.packed.Close(); err != nil {
			return err
		}
	}
	return w.buf.Flush()
}
