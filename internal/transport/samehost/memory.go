package samehost

import (
	"context"
	"errors"
)

// chunk is read at a time, between two looks whether anybody still wants it.
const chunk = 16 << 20

// memory is a way to the elements of a process whose memory can be read, by its number.
type memory int

var errReturned = errors.New("the tensor is no longer lent")

// lends implements [way].
func (m memory) lends(r *reply) error {
	word, err := readWord(int(m), r.word)
	if err == nil && word != r.ticket {
		err = errReturned
	}
	return err
}

// read implements [way].
func (m memory) read(ctx context.Context, dst []byte, r *reply) error {
	for at := 0; at < len(dst); at += chunk {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := readMemory(int(m), dst[at:min(at+chunk, len(dst))], r.elements+uint64(at)); err != nil {
			return err
		}
	}
	return m.lends(r)
}
