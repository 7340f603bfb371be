// Package sstable reads and writes sorted string tables, LevelDB's file format, which TensorFlow's
// checkpoints use: pairs of keys and values in ascending order of the keys.
//
// A table is a sequence of blocks. A data block contains entries, each with the suffix of its key
// that differs from the key before, and then the positions of the entries with complete keys
// (restarts). The index block maps a separator key to the position of each data block: a key that
// is not smaller than the keys in the block and smaller than those in the next block. A footer of
// fixed size contains the position of the index. Each block is followed by a byte for its
// compression and a checksum.
//
// Sizes in a file are checked against the size of the file before memory is allocated. Malformed
// data is an error with the code DataLoss.
package sstable

import "encoding/binary"

const (
	magic = 0xdb4775248b80fb57

	footerSize  = 2*2*binary.MaxVarintLen64 + 8 // two handles, padded, and the magic number
	trailerSize = 1 + 4                         // a byte for the compression and a masked checksum

	compressionNone   = 0
	compressionSnappy = 1
)

// A handle is the position and size of a block in the file, in bytes.
type handle struct{ offset, size uint64 }

func (h handle) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, h.offset), h.size)
}

// parseHandle parses a handle at the start of b and returns the rest of b.
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
