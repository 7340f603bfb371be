package record

import (
	"bufio"
	"encoding/binary"
	"io"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Writer writes records. After an error of the underlying writer all later calls return it. The
// methods must not be called concurrently.
type Writer struct {
	buf    *bufio.Writer
	packed compressor // writes to buf; nil without compression
	out    io.Writer  // buf or packed
}

const (
	writeBuffer = 64 << 10
	// compressorSize is about the memory of a compressor, in bytes.
	compressorSize = 1 << 20
)

// NewWriter returns a writer of records to w. The error has the code ResourceExhausted if there is
// no memory for its buffers: a saved dataset has a writer for each shard.
func NewWriter(w io.Writer, c Compression) (*Writer, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	size := int64(writeBuffer)
	if c != None && c != "NONE" {
		size += compressorSize
	}
	if !membudget.Take(size) {
		return nil, status.ResourceExhaustedf("out of memory: there is none for the buffer of a file (--memory-limit)")
	}
	buf := bufio.NewWriterSize(w, writeBuffer)
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
