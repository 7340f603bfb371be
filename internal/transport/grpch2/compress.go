package grpch2

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
)

// acceptedEncodings lists the compressions of requests that the server understands. A response is
// compressed like its request; requests of the client are not compressed.
const acceptedEncodings = "identity,deflate,gzip"

// supportedEncoding reports whether messages with a grpc-encoding can be read.
func supportedEncoding(encoding string) bool {
	return encoding == "" || encoding == "identity" || encoding == "deflate" || encoding == "gzip"
}

// isCompressed reports whether an encoding changes the message.
func isCompressed(encoding string) bool { return encoding == "deflate" || encoding == "gzip" }

// errDecompressed reports a message that is too large once it is decompressed.
var errDecompressed = errors.New("the decompressed message is too large")

// decompress returns the decompressed message, of at most a number of bytes, in a Body that newBody
// returns for its size.
func decompress(encoding string, data [][]byte, most int, newBody func(size int) Body) (Body, error) {
	r, err := decompressor(encoding, data)
	if err != nil {
		return nil, err
	}
	var plain bytes.Buffer
	if _, err := io.Copy(&plain, io.LimitReader(r, int64(most)+1)); err != nil {
		return nil, err
	}
	if plain.Len() > most {
		return nil, errDecompressed
	}
	body := newBody(plain.Len())
	for rest := plain.Bytes(); len(rest) > 0; {
		n := copy(body.Buffer(), rest)
		body.Advance(n)
		rest = rest[n:]
	}
	return body, nil
}

func decompressor(encoding string, data [][]byte) (io.Reader, error) {
	readers := make([]io.Reader, len(data))
	for i, b := range data {
		readers[i] = bytes.NewReader(b)
	}
	if encoding == "deflate" {
		return zlib.NewReader(io.MultiReader(readers...))
	}
	return gzip.NewReader(io.MultiReader(readers...))
}

// compress returns a message compressed with an encoding.
func compress(encoding string, data [][]byte) ([][]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if encoding == "deflate" {
		w = zlib.NewWriter(&out)
	}
	for _, b := range data {
		if _, err := w.Write(b); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return [][]byte{out.Bytes()}, err
}
