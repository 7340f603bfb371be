// Package unsized reads input whose length is not known before it has been read, such as a line or
// a record with its length in front, which may be false. Memory grows with the bytes that exist,
// and [membudget] is asked for it before it is taken. An error of a read that there is no memory
// for has the code ResourceExhausted.
package unsized

import (
	"bufio"
	"errors"
	"io"
	"math"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

const (
	// firstSize is the capacity of a new buffer in bytes.
	firstSize = 512
	// minAsked is the smallest buffer, in bytes, that the budget is asked for.
	minAsked = 16 << 10
)

// All returns all bytes of r.
func All(r io.Reader) ([]byte, error) {
	b, err := Exactly(nil, r, math.MaxInt64)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return b, err
}

// Exactly appends n bytes of r to b, and returns the result. If r has fewer, the result has them
// all, and the error is [io.EOF] if there was none and [io.ErrUnexpectedEOF] otherwise.
func Exactly(b []byte, r io.Reader, n int64) ([]byte, error) {
	start := len(b)
	for n > 0 {
		if len(b) == cap(b) {
			var err error
			if b, err = room(b, min(n, int64(max(cap(b), firstSize)))); err != nil {
				return b, err
			}
		}
		free := b[len(b):cap(b)]
		got, err := r.Read(free[:min(int64(len(free)), n)])
		b = b[:len(b)+got]
		n -= int64(got)
		switch {
		case n == 0:
			return b, nil
		case errors.Is(err, io.EOF) && len(b) > start:
			return b, io.ErrUnexpectedEOF
		case err != nil:
			return b, err
		}
	}
	return b, nil
}

// Grow returns b, or a copy of it, that has room for another byte.
func Grow(b []byte) ([]byte, error) {
	if len(b) < cap(b) {
		return b, nil
	}
	return room(b, int64(max(cap(b), firstSize)))
}

// room returns a copy of b that has room for n more bytes.
func room(b []byte, n int64) ([]byte, error) {
	n += int64(len(b))
	if err := ask(n); err != nil {
		return b, err
	}
	return append(make([]byte, 0, n), b...), nil
}

func ask(n int64) error {
	if n >= minAsked && !membudget.Take(n) {
		return status.ResourceExhaustedf("out of memory: there is none for the %d bytes of one element of a file", n)
	}
	return nil
}

// Line returns the next line of r with its line end, which the last line may lack. The error is
// [io.EOF] if no line is left.
func Line(r *bufio.Reader) (string, error) {
	part, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return lastLine(string(part), err)
	}
	var line []byte
	for {
		if cap(line)-len(line) < len(part) {
			var failed error
			if line, failed = room(line, int64(max(cap(line), len(part)))); failed != nil {
				return "", failed
			}
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		part, err = r.ReadSlice('\n')
	}
	text, failed := String(line)
	if failed != nil {
		return "", failed
	}
	return lastLine(text, err)
}

// lastLine returns a line that ended with err.
func lastLine(line string, err error) (string, error) {
	if line != "" && errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// String returns b as a string of its own.
func String(b []byte) (string, error) {
	if err := ask(int64(len(b))); err != nil {
		return "", err
	}
	return string(b), nil
}
