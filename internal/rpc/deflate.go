package rpc

import (
	"compress/zlib"
	"io"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // the other algorithm that TensorFlow's clients can ask for
)

// deflate is a compression that gRPC in C++ has and gRPC in Go does not. Calls are answered in the compression of their
// request; our clients ask for none.
type deflate struct{}

func init() { encoding.RegisterCompressor(deflate{}) } //nolint:gochecknoinits // fills gRPC's registry

// Name returns how the algorithm is called on the wire.
func (deflate) Name() string { return "deflate" }

// Compress returns a writer that compresses to w.
func (deflate) Compress(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriter(w), nil }

// Decompress returns a reader of what is compressed in r.
func (deflate) Decompress(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) }
