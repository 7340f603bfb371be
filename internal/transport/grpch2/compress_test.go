package grpch2

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weft-ml/weft/internal/sys/membudget"
)

func TestDecompress(t *testing.T) {
	newBody := func(n int) Body { return NewChunks(n) }
	for _, n := range []int{0, 1, firstChunk, firstChunk + 1, 5 << 20} {
		plain := bytes.Repeat([]byte("abc"), n/3+1)[:n]
		for _, encoding := range []string{"gzip", "deflate"} {
			packed, err := compress(encoding, [][]byte{plain})
			if err != nil {
				t.Fatal(err)
			}
			packed = [][]byte{bytes.Join(packed, nil)}
			body, err := decompress(encoding, packed, n, newBody)
			if err != nil {
				t.Errorf("%s, %d bytes: %v", encoding, n, err)
				continue
			}
			if got := bytes.Join(body.(*Chunks).Data(), nil); !bytes.Equal(got, plain) {
				t.Errorf("%s, %d bytes: %d bytes are decompressed", encoding, n, len(got))
			}
			if _, err := decompress(encoding, packed, n-1, newBody); n > 0 && !errors.Is(err, errDecompressed) {
				t.Errorf("%s, %d bytes, one fewer allowed: %v", encoding, n, err)
			}
			packed[0] = packed[0][:len(packed[0])-3]
			if _, err := decompress(encoding, packed, n, newBody); err == nil {
				t.Errorf("%s, %d bytes: no error for a message that is cut off", encoding, n)
			}
		}
	}
}

// Memory for a compressed message, and for its content, is asked for.
func TestDecompressWithoutMemory(t *testing.T) {
	packed, err := compress("gzip", [][]byte{make([]byte, 64<<20)})
	if err != nil {
		t.Fatal(err)
	}
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1 << 20)
	if _, err := decompress("gzip", packed, 64<<20, func(n int) Body { return NewChunks(n) }); !errors.Is(err, errMemory) {
		t.Errorf("error %v, want %v", err, errMemory)
	}
	noise := make([]byte, 4<<20)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	for _, encoding := range []string{"gzip", "deflate"} {
		if _, err := compress(encoding, [][]byte{noise}); !errors.Is(err, errMemory) {
			t.Errorf("%s of what cannot be compressed: %v", encoding, err)
		}
	}
	c := NewChunks(64 << 20)
	for left := 64 << 20; left > 0; {
		n := len(c.Buffer())
		c.Advance(n)
		left -= n
	}
	if !c.refused || len(c.Data()) > 1 {
		t.Errorf("%d chunks are in memory", len(c.Data()))
	}
}
