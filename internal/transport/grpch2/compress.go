package grpch2

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
)

// acceptedEncodings are the compressions that messages may come in. A response has that of its
// request; our own requests are not compressed.
const acceptedEncodings = "identity,deflate,gzip"

// known reports whether messages may be compressed so.
func known(encoding string) bool {
	return encoding == "" || encoding == "identity" || encoding == "deflate" || encoding == "gzip"
}

// compressed reports whether the encoding changes anything.
func compressed(encoding string) bool { return encoding == "deflate" || encoding == "gzip" }

// decompress returns a message as it was before it was compressed, in a Body that is made for each
// size that the message turns out to have at least.
func decompress(encoding string, data [][]byte, room func(size int) Body) (Body, error) {
	r, err := decompressor(encoding, data)
	if err != nil {
		return nil, err
	}
	var plain bytes.Buffer
	if _, err := io.Copy(&plain, io.LimitReader(r, maxMessage+1)); err != nil {
		return nil, err
	}
	if plain.Len() > maxMessage {
		return nil, fmt.Errorf("the message is larger than %d bytes", maxMessage)
	}
	body := room(plain.Len())
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

// compress returns a message as the encoding has it.
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
