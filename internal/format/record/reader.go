package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/format/unsized"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Reader reads records. Its methods must not be called concurrently.
type Reader struct {
	src    *bufio.Reader // compressed
	c      Compression
	r      io.Reader // decompressed; nil before the first record
	offset int64     // of the next record in the decompressed file
	buf    []byte    // the current record
}

// readBuffer is the size of the buffer of a reader in bytes.
const readBuffer = 64 << 10

// NewReader returns a reader of the records in r. The error has the code ResourceExhausted if there
// is no memory for its buffer.
func NewReader(r io.Reader, c Compression) (*Reader, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if !membudget.Take(readBuffer) {
		return nil, status.ResourceExhaustedf("out of memory: there is none for the buffer of a file (--memory-limit)")
	}
	return &Reader{src: bufio.NewReaderSize(r, readBuffer), c: c}, nil
}

// Offset returns the position of the next record in the decompressed file, in bytes.
func (r *Reader) Offset() int64 { return r.offset }

// Next returns the next record, which is valid until the next call, or [io.EOF] at the end of the
// file. The error has the code DataLoss if the file is damaged or ends within a record.
func (r *Reader) Next() ([]byte, error) {
	if err := r.open(); err != nil {
		return nil, err
	}
	var head [12]byte
	if n, err := io.ReadFull(r.r, head[:]); err != nil {
		if n == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, r.truncated(err)
	}
	length := binary.LittleEndian.Uint64(head[:])
	if crc32c.Mask(crc32c.Sum(head[:8])) != binary.LittleEndian.Uint32(head[8:]) || length > math.MaxInt64-16 {
		return nil, status.DataLossf("corrupted record at %d", r.offset)
	}
	var err error
	if r.buf, err = unsized.Exactly(r.buf[:0], r.r, int64(length)+4); err != nil {
		return nil, r.truncated(err)
	}
	body, sum := r.buf[:length], r.buf[length:]
	if crc32c.Mask(crc32c.Sum(body)) != binary.LittleEndian.Uint32(sum) {
		return nil, status.DataLossf("corrupted record at %d", r.offset)
	}
	r.offset += int64(length) + 16
	return body, nil
}

// open starts the decompression, which reads the start of the file.
func (r *Reader) open() error {
	if r.r != nil {
		return nil
	}
	if _, err := r.src.Peek(1); errors.Is(err, io.EOF) {
		return io.EOF
	}
	var err error
	if r.r, err = r.c.reader(r.src); err != nil {
		return r.truncated(err)
	}
	return nil
}

func (r *Reader) truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return status.DataLossf("truncated record at %d' failed with Read less bytes than requested", r.offset)
	}
	if _, known := errors.AsType[*status.Error](err); known {
		return err // of the file, such as the end of the step
	}
	return status.DataLossf("reading a record at %d: %w", r.offset, err)
}
