// Package record reads and writes TensorFlow's record files (TFRecord): a sequence of byte strings,
// each with its length in 8 bytes, little-endian, the masked checksum of the length, and after the
// bytes their masked checksum. Whole files may be compressed.
package record

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"io"

	"github.com/weft-ml/weft/status"
)

// Compression is how a file of records is compressed.
type Compression string

// The compressions, by the names that TensorFlow has for them.
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

// reader returns what decompresses r.
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

// compressor is a writer that compresses.
type compressor interface {
	io.WriteCloser
	Flush() error
}

// writer returns what compresses to w; nil for None.
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
