package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/golang/snappy"

	"github.com/weft-ml/weft/internal/format/unsized"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// A file that is compressed with Snappy is a sequence of blocks. Each block follows its length, 4
// bytes in big-endian order.
const (
	snappyBlock = 256 << 10 // bytes in a block before compression
	maxBlock    = 1 << 30   // largest block that is read, in bytes
	maxRatio    = 64        // bound of the compression: Snappy copies at most 64 bytes with two
)

type snappyWriter struct {
	to  io.Writer
	buf []byte
}

func (w *snappyWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		k := min(len(b), snappyBlock-len(w.buf))
		w.buf, b = append(w.buf, b[:k]...), b[k:]
		if len(w.buf) == snappyBlock {
			if err := w.Flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// Flush writes the buffered bytes as a block.
func (w *snappyWriter) Flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	block := snappy.Encode(nil, w.buf)
	w.buf = w.buf[:0]
	if _, err := w.to.Write(binary.BigEndian.AppendUint32(nil, uint32(len(block)))); err != nil {
		return err
	}
	_, err := w.to.Write(block)
	return err
}

func (w *snappyWriter) Close() error { return w.Flush() }

type snappyReader struct {
	from *bufio.Reader
	rest []byte // unread bytes of the block
}

func (r *snappyReader) Read(b []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.block(); err != nil {
			return 0, err
		}
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// block reads the next block.
func (r *snappyReader) block() error {
	var head [4]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	packed, err := unsized.Exactly(nil, r.from, size)
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	n, err := snappy.DecodedLen(packed)
	if err != nil || n > maxBlock || n > maxRatio*len(packed) {
		return status.DataLossf("a block of a Snappy file is damaged")
	}
	if !membudget.Take(int64(n)) {
		return status.ResourceExhaustedf("out of memory: there is none for a Snappy block of %d bytes (--memory-limit)", n)
	}
	if r.rest, err = snappy.Decode(nil, packed); err != nil {
		return errors.Join(status.DataLossf("a block of a Snappy file is damaged"), err)
	}
	return nil
}
