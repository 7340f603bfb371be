package sstable

import (
	"bytes"
	"encoding/binary"
	"io"
	"iter"

	"github.com/golang/snappy"

	"github.com/weft-ml/weft/internal/format/crc32c"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Reader reads a table. Its methods may be called concurrently.
type Reader struct {
	r     io.ReaderAt
	size  uint64
	index block
}

// NewReader returns a reader of the table in the first size bytes of r. The reader uses r until the
// caller is done with it.
func NewReader(r io.ReaderAt, size int64) (*Reader, error) {
	if size < footerSize {
		return nil, status.DataLossf("file is too short to be an sstable")
	}
	var footer [footerSize]byte
	if _, err := r.ReadAt(footer[:], size-footerSize); err != nil {
		return nil, status.DataLossf("reading the end of a table: %w", err)
	}
	if binary.LittleEndian.Uint64(footer[footerSize-8:]) != magic {
		return nil, status.DataLossf("not an sstable (bad magic number)")
	}
	t := &Reader{r: r, size: uint64(size)}
	_, rest, ok := parseHandle(footer[:footerSize-8])
	if !ok {
		return nil, status.DataLossf("a table has a bad footer")
	}
	h, _, ok := parseHandle(rest)
	if !ok {
		return nil, status.DataLossf("a table has a bad footer")
	}
	var err error
	t.index, err = t.block(h)
	return t, err
}

// block reads a block. It checks that the block is within the file, and verifies its checksum.
func (t *Reader) block(h handle) (block, error) {
	if h.offset > t.size || h.size > t.size-h.offset || t.size-h.offset-h.size < trailerSize {
		return block{}, status.DataLossf("a block of %d bytes at byte %d is beyond the end of a table of %d", h.size, h.offset, t.size)
	}
	if !membudget.Take(int64(h.size)) {
		return block{}, errNoMemory(int64(h.size))
	}
	b := make([]byte, h.size+trailerSize)
	if _, err := t.r.ReadAt(b, int64(h.offset)); err != nil {
		return block{}, status.DataLossf("reading a block of a table: %w", err)
	}
	contents, kind, want := b[:h.size], b[h.size], binary.LittleEndian.Uint32(b[h.size+1:])
	if crc32c.Mask(crc32c.Sum(b[:h.size+1])) != want {
		return block{}, status.DataLossf("block checksum mismatch at byte %d", h.offset)
	}
	switch kind {
	case compressionNone:
	case compressionSnappy:
		var err error
		if contents, err = uncompress(contents); err != nil {
			return block{}, err
		}
	default:
		return block{}, status.DataLossf("a block has the unknown compression %d", kind)
	}
	return parseBlock(contents)
}

func errNoMemory(bytes int64) error {
	return status.ResourceExhaustedf("out of memory: there is none for a block of %d bytes (--memory-limit)", bytes)
}

// maxRatio is an upper bound for the compression ratio: Snappy copies at most 64 bytes per element,
// and an element has at least 2 bytes.
const maxRatio = 64

func uncompress(b []byte) ([]byte, error) {
	n, err := snappy.DecodedLen(b)
	if err != nil || n > maxRatio*len(b) {
		return nil, status.DataLossf("a compressed block of %d bytes claims to hold %d", len(b), n)
	}
	if !membudget.Take(int64(n)) {
		return nil, errNoMemory(int64(n))
	}
	out, err := snappy.Decode(nil, b)
	if err != nil {
		return nil, status.DataLossf("a compressed block: %w", err)
	}
	return out, nil
}

// Get returns the value of a key, or nil if the table does not contain it.
func (t *Reader) Get(key []byte) ([]byte, error) {
	_, place, ok, err := t.index.seek(key)
	if err != nil || !ok {
		return nil, err
	}
	b, err := t.at(place)
	if err != nil {
		return nil, err
	}
	k, value, ok, err := b.seek(key)
	if err != nil || !ok || !bytes.Equal(k, key) {
		return nil, err
	}
	return value, nil
}

func (t *Reader) at(place []byte) (block, error) {
	h, _, ok := parseHandle(place)
	if !ok {
		return block{}, status.DataLossf("the index of a table has a bad entry")
	}
	return t.block(h)
}

// All iterates over the entries in order. A key is valid until the next iteration; values stay
// valid. The iteration ends at the first error, which it stores in *err.
func (t *Reader) All(err *error) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		var last []byte
		first := true
		for _, place := range t.index.all(0, err) {
			b, e := t.at(place)
			if e != nil {
				*err = e
				return
			}
			for k, v := range b.all(0, err) {
				if !first && bytes.Compare(k, last) <= 0 {
					*err = status.DataLossf("the keys of a table are out of order")
					return
				}
				first = false
				last = append(last[:0], k...)
				if !yield(k, v) {
					return
				}
			}
			if *err != nil {
				return
			}
		}
	}
}
