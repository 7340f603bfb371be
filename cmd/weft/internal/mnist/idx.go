package mnist

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// idxUint8 is the type of bytes in an IDX file. The file starts with two zero bytes, the type of
// its elements and the number of dimensions, followed by the dimensions as big-endian 32-bit
// numbers and the elements.
const idxUint8 = 0x08

// maxElements bounds the number of elements, so that the product of the dimensions does not
// overflow. MNIST has 47 million.
const maxElements = 1 << 30

// readFile reads an IDX file of bytes, gzipped or not. inner are the expected dimensions after the
// first.
func readFile(path string, inner ...int) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := read(f, inner...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

func read(r io.Reader, inner ...int) ([]byte, error) {
	buffered := bufio.NewReader(r)
	if start, err := buffered.Peek(2); err == nil && bytes.Equal(start, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("damaged gzip header: %w", err)
		}
		return decode(unzipped, inner)
	}
	return decode(buffered, inner)
}

func decode(r io.Reader, inner []int) ([]byte, error) {
	header := make([]byte, 4+4*(1+len(inner)))
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, fmt.Errorf("truncated: no IDX header of %d bytes: %w", len(header), err)
	}
	want := []byte{0, 0, idxUint8, byte(1 + len(inner))}
	if !bytes.Equal(header[:4], want) {
		return nil, fmt.Errorf("not an IDX file of bytes with %d dimensions: it starts with % x, want % x", want[3], header[:4], want)
	}
	dim := func(i int) uint32 { return binary.BigEndian.Uint32(header[4+4*i:]) }
	size := int64(dim(0))
	for i, n := range inner {
		if got := dim(1 + i); got != uint32(n) {
			return nil, fmt.Errorf("dimension %d is %d, want %d", 1+i, got, n)
		}
		size *= int64(n)
	}
	if size == 0 || size > maxElements {
		return nil, fmt.Errorf("the header claims %d items, want 1 or more and at most %d bytes", dim(0), maxElements)
	}
	return body(r, size)
}

// body reads exactly size bytes. Memory grows with the input, so a false size allocates none.
func body(r io.Reader, size int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, size+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || err == nil && int64(len(data)) < size:
		return nil, fmt.Errorf("truncated: %d of %d bytes of data", len(data), size)
	case err != nil:
		return nil, fmt.Errorf("damaged after %d of %d bytes of data: %w", len(data), size, err)
	case int64(len(data)) > size:
		return nil, fmt.Errorf("more than the %d bytes of data that the header claims", size)
	}
	return data, nil
}

// writeFile writes a gzipped IDX file of bytes. inner are the dimensions after the first.
func writeFile(path string, data []byte, inner ...int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	zipped, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := encode(zipped, data, inner...); err != nil {
		return err
	}
	return zipped.Close()
}

func encode(w io.Writer, data []byte, inner ...int) error {
	n := len(data)
	for _, d := range inner {
		n /= d
	}
	header := []byte{0, 0, idxUint8, byte(1 + len(inner))}
	header = binary.BigEndian.AppendUint32(header, uint32(n))
	for _, d := range inner {
		header = binary.BigEndian.AppendUint32(header, uint32(d))
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
