package grpch2

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"

	"github.com/weft-ml/weft/internal/sys/membudget"
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

// errMemory reports a message for which there is no memory.
var errMemory = errors.New("there is not enough memory to decompress the message (--memory-limit)")

// maxPlainPiece is the largest piece, in bytes, in which a message is decompressed.
const maxPlainPiece = 1 << 20

// firstPacked is the size of the first piece of a message that is compressed, in bytes. Most
// messages are small.
const firstPacked = 512

// decompress returns the decompressed message, of at most a number of bytes, in a Body that newBody
// returns for its size.
func decompress(encoding string, data [][]byte, most int, newBody func(size int) Body) (Body, error) {
	r, err := decompressor(encoding, data)
	if err != nil {
		return nil, err
	}
	pieces, size, err := readPieces(io.LimitReader(r, int64(most)+1))
	if err != nil {
		return nil, err
	}
	if size > most {
		return nil, errDecompressed
	}
	body := newBody(size)
	for i, rest := range pieces {
		for len(rest) > 0 {
			n := copy(body.Buffer(), rest)
			body.Advance(n)
			rest = rest[n:]
		}
		pieces[i] = nil // a garbage collection may free it
	}
	return body, nil
}

// readPieces reads everything in pieces, and asks for their memory.
func readPieces(r io.Reader) (pieces [][]byte, size int, err error) {
	for next := firstChunk; ; next = min(2*next, maxPlainPiece) {
		if !membudget.Take(int64(next)) {
			return nil, 0, errMemory
		}
		piece := make([]byte, next)
		n := 0
		for n < len(piece) && err == nil {
			var read int
			read, err = r.Read(piece[n:])
			n += read
		}
		pieces = append(pieces, piece[:n])
		size += n
		if errors.Is(err, io.EOF) {
			return pieces, size, nil
		}
		if err != nil {
			return nil, 0, err
		}
	}
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

// compress returns a message compressed with an encoding. It returns errMemory if there is no
// memory for it.
func compress(encoding string, data [][]byte) ([][]byte, error) {
	var out compressedPieces
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
	return out.pieces, err
}

// compressedPieces collects what is written in pieces, and asks for their memory. A message that
// cannot be compressed is as large as it was.
type compressedPieces struct {
	pieces [][]byte
}

func (p *compressedPieces) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		last := len(p.pieces) - 1
		if last < 0 || len(p.pieces[last]) == cap(p.pieces[last]) {
			next := firstPacked
			if last >= 0 {
				next = min(2*cap(p.pieces[last]), maxPlainPiece)
			}
			if next >= firstChunk && !membudget.Take(int64(next)) {
				return 0, errMemory
			}
			p.pieces = append(p.pieces, make([]byte, 0, next))
			last++
		}
		to := p.pieces[last]
		n := min(len(rest), cap(to)-len(to))
		p.pieces[last], rest = append(to, rest[:n]...), rest[n:]
	}
	return len(b), nil
}
