// Package record reads and writes TensorFlow's record files (TFRecord). A record is its length as 8
// bytes, little-endian, the masked checksum of the length, the bytes, and their masked checksum. A
// file may be compressed as a whole.
package record

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"io"

	"github.com/weft-ml/weft/status"
)

// Compression is the compression of a file.
type Compression string

// The compressions, with TensorFlow's names.
const (
	None Compression = ""
	ZLIB Compression = "ZLIB"
	GZIP Compression = "GZIP"

	Snappy Compression = "SNAPPY"
)

func (c Compression) check() error {
	switch c {
	case None, ZLIB, GZIP, Snappy, "NONE":
		return nil
	default:
		return status.InvalidArgumentf("Unsupported compression_type: %s", c)
	}
}

// reader returns a reader that decompresses r.
func (c Compression) reader(r io.Reader) (io.Reader, error) {
	switch c {
	case ZLIB:
		return zlib.NewReader(r)
	case GZIP:
		return gzip.NewReader(r)
	case Snappy:
		return &snappyReader{from: bufio.NewReader(r)}, nil
	default:
		return r, nil
	}
}

// A compressor is a writer that compresses.
type compressor interface {
	io.WriteCloser
	Flush() error
}

// writer returns a compressor that writes to w; nil for [None].
func (c Compression) writer(w io.Writer) compressor {
	switch c {
	case ZLIB:
		return zlib.NewWriter(w)
	case GZIP:
		return gzip.NewWriter(w)
	case Snappy:
		return &snappyWriter{to: w}
	default:
		return nil
	}
}
