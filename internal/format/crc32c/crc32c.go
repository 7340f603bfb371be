// Package crc32c computes the checksums of TensorFlow's file formats: CRC-32 with Castagnoli's
// polynomial, which files store in masked form.
package crc32c

import (
	"hash/crc32"
	"sync"
)

// table returns the table of the polynomial. It is made at the first use, since a task that reads
// and writes no files would spend 1 % of its start on it.
var table = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// Sum returns the checksum of b.
func Sum(b []byte) uint32 { return crc32.Checksum(b, table()) }

// Update returns the checksum of the bytes that crc covers, followed by b.
func Update(crc uint32, b []byte) uint32 { return crc32.Update(crc, table(), b) }

// maskDelta is added to a rotated checksum to mask it.
const maskDelta = 0xa282ead8

// Mask returns the form of a checksum in files. A checksum of bytes that contain unmasked checksums
// would be weak.
func Mask(crc uint32) uint32 { return (crc>>15 | crc<<17) + maskDelta }

// Unmask is the inverse of [Mask].
func Unmask(masked uint32) uint32 {
	rot := masked - maskDelta
	return rot>>17 | rot<<15
}
