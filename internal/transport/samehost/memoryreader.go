package samehost

import (
	"context"
	"errors"
)

// readChunk is the number of bytes that are read between two checks of the context.
const readChunk = 16 << 20

// memoryReader reads the memory of the process with this ID.
type memoryReader int

var errLeaseEnded = errors.New("the lease has ended")

// checkLease implements [elementReader].
func (m memoryReader) checkLease(r *reply) error {
	word, err := readWord(int(m), r.idAddr)
	if err == nil && word != r.leaseID {
		err = errLeaseEnded
	}
	return err
}

// read implements [elementReader].
func (m memoryReader) read(ctx context.Context, dst []byte, r *reply) error {
	for at := 0; at < len(dst); at += readChunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := readMemory(int(m), dst[at:min(at+readChunk, len(dst))], r.elementsAddr+uint64(at)); err != nil {
			return err
		}
	}
	return m.checkLease(r)
}
