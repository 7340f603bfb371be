// Package crc32c holds the checksums of TensorFlow's file formats: CRC-32 with Castagnoli's
// polynomial, stored masked.
package crc32c

import "hash/crc32"

var table = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the checksum of b.
func Sum(b []byte) uint32 { return crc32.Checksum(b, table) }

// Update returns the checksum of what crc is the checksum of, followed by b.
func Update(crc uint32, b []byte) uint32 { return crc32.Update(crc, table, b) }

// maskDelta makes masked checksums differ from plain ones.
const maskDelta = 0xa282ead8

// Mask returns the form in which files store a checksum: a checksum of bytes that contain plain
// checksums is weak.
func Mask(crc uint32) uint32 { return (crc>>15 | crc<<17) + maskDelta }

// Unmask undoes Mask.
func Unmask(masked uint32) uint32 {
	rot := masked - maskDelta
	return rot>>17 | rot<<15
}
