// Package sstable reads and writes sorted string tables, the format that LevelDB introduced and
// that TensorFlow's checkpoints use: keys in ascending order with their values.
//
// A table is a sequence of blocks. Data blocks hold entries, each with as much of its key as
// differs from the key before, and at the end the positions of entries whose keys are whole. An
// index block maps a key that is not smaller than any in a data block, and smaller than all in the
// next one, to the place of that block. A footer of fixed size says where the index is. Each block
// is followed by a byte that says how it is compressed and by a checksum.
//
// All sizes that a file claims are checked against the size of the file before memory is allocated
// for them. What does not fit the format is a DataLoss error.
package sstable

import "encoding/binary"

const (
	magic = 0xdb4775248b80fb57

	footerSize  = 2*2*binary.MaxVarintLen64 + 8 // two handles, padded, and the magic number
	trailerSize = 1 + 4                         // the kind of compression and a masked checksum

	compressionNone   = 0
	compressionSnappy = 1
)

// handle is the place of a block in the file.
type handle struct{ offset, size uint64 }

func (h handle) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, h.offset), h.size)
}

// parseHandle reads a handle from the front of b and returns the rest.
func parseHandle(b []byte) (h handle, rest []byte, ok bool) {
	offset, n := binary.Uvarint(b)
	if n <= 0 {
		return handle{}, nil, false
	}
	size, m := binary.Uvarint(b[n:])
	if m <= 0 {
		return handle{}, nil, false
	}
	return handle{offset, size}, b[n+m:], true
}
