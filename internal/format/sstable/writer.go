package sstable

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

const (
	blockSize       = 256 << 10 // size in bytes at which a data block ends; TensorFlow's
	restartInterval = 16        // entries from one complete key to the next; TensorFlow's
)

// Writer writes a table that is identical to TensorFlow's. After an error of the underlying writer
// all later calls return it. The methods must not be called concurrently.
type Writer struct {
	w      io.Writer
	offset uint64 // bytes written
	err    error  // of the first failed write

	data, index blockWriter
	lastKey     []byte
	// last data block, if its index entry is not written until the next key is known
	pending *handle
}

// NewWriter returns a writer of a table without entries.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, data: blockWriter{interval: restartInterval}, index: blockWriter{interval: 1}}
}

// Add appends an entry. Its key must be greater than all keys before it (Internal).
func (w *Writer) Add(key, value []byte) error {
	if w.err != nil {
		return w.err
	}
	if (w.data.count > 0 || w.pending != nil) && bytes.Compare(key, w.lastKey) <= 0 {
		return status.Internalf("key %q is added to a table after %q", key, w.lastKey)
	}
	if w.err = w.data.reserve(len(key) + len(value)); w.err != nil {
		return w.err
	}
	if w.pending != nil {
		if w.addIndex(separator(w.lastKey, key)); w.err != nil {
			return w.err
		}
	}
	w.data.add(key, value)
	w.lastKey = append(w.lastKey[:0], key...)
	if w.data.size() >= blockSize {
		w.flush()
	}
	return w.err
}

// Close completes the table. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.data.count > 0 {
		w.flush()
	}
	meta := w.block((&blockWriter{interval: 1}).finish())
	if w.pending != nil {
		w.addIndex(successor(w.lastKey))
	}
	index := w.block(w.index.finish())
	footer := index.append(meta.append(make([]byte, 0, footerSize)))
	footer = footer[:footerSize]
	binary.LittleEndian.PutUint64(footer[footerSize-8:], magic)
	w.write(footer)
	return w.err
}

func (w *Writer) addIndex(key []byte) {
	value := w.pending.append(nil)
	w.pending = nil
	// keys that share a long prefix are in the index as a whole
	if err := w.index.reserve(len(key) + len(value)); err != nil {
		w.err = err
		return
	}
	w.index.add(key, value)
}

func (w *Writer) flush() {
	h := w.block(w.data.finish())
	w.data = blockWriter{interval: restartInterval, buf: w.data.buf[:0]}
	w.pending = &h
}

// block writes the contents of a block and its trailer.
func (w *Writer) block(contents []byte) handle {
	h := handle{w.offset, uint64(len(contents))}
	trailer := []byte{compressionNone}
	crc := crc32c.Update(crc32c.Sum(contents), trailer)
	w.write(contents)
	w.write(binary.LittleEndian.AppendUint32(trailer, crc32c.Mask(crc)))
	return h
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.w.Write(b)
	w.offset += uint64(n)
	if err != nil {
		w.err = fmt.Errorf("writing a table: %w", err)
	}
}

// separator returns a short key k with lo <= k < hi, for the index entry between two blocks.
func separator(lo, hi []byte) []byte {
	n := 0
	for n < min(len(lo), len(hi)) && lo[n] == hi[n] {
		n++
	}
	if n >= min(len(lo), len(hi)) || lo[n] == 0xff || lo[n]+1 >= hi[n] {
		return lo
	}
	short := bytes.Clone(lo[:n+1])
	short[n]++
	return short
}

// successor returns a short key that is not smaller than key.
func successor(key []byte) []byte {
	for i, c := range key {
		if c != 0xff {
			short := bytes.Clone(key[:i+1])
			short[i]++
			return short
		}
	}
	return key
}

// blockWriter builds the contents of one block.
type blockWriter struct {
	interval int // entries from one complete key to the next
	buf      []byte
	restarts []uint32
	count    int    // entries
	last     []byte // key of the last entry
}

// reserve asks for the memory of an entry with n bytes of key and value, and of what ends the
// block. The elements of a tensor in a checkpoint of format V1 are one value.
func (b *blockWriter) reserve(n int) error {
	const sizes, last = 3 * binary.MaxVarintLen64, 2 * 4 // a restart and the number of restarts
	n += len(b.buf) + sizes + 4*len(b.restarts) + last
	if n <= cap(b.buf) {
		return nil
	}
	n = max(n, 2*cap(b.buf))
	if !membudget.Take(int64(n)) {
		return errNoMemory(int64(n))
	}
	b.buf = append(make([]byte, 0, n), b.buf...)
	return nil
}

func (b *blockWriter) add(key, value []byte) {
	shared := 0
	if b.count%b.interval == 0 {
		b.restarts = append(b.restarts, uint32(len(b.buf)))
	} else {
		for shared < min(len(key), len(b.last)) && key[shared] == b.last[shared] {
			shared++
		}
	}
	b.buf = binary.AppendUvarint(b.buf, uint64(shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(key)-shared))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(value)))
	b.buf = append(append(b.buf, key[shared:]...), value...)
	b.last = append(b.last[:0], key...)
	b.count++
}

// size returns the size of the finished block in bytes.
func (b *blockWriter) size() int { return len(b.buf) + 4*max(len(b.restarts), 1) + 4 }

func (b *blockWriter) finish() []byte {
	if len(b.restarts) == 0 {
		b.restarts = []uint32{0}
	}
	for _, r := range b.restarts {
		b.buf = binary.LittleEndian.AppendUint32(b.buf, r)
	}
	return binary.LittleEndian.AppendUint32(b.buf, uint32(len(b.restarts)))
}
