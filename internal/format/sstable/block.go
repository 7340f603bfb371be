package sstable

import (
	"bytes"
	"encoding/binary"
	"iter"

	"github.com/weft-ml/weft/status"
)

// A block is the parsed contents of a block. It has as many restarts as it claims.
type block struct {
	entries  []byte
	restarts []byte // 4 bytes each
}

func parseBlock(b []byte) (block, error) {
	if len(b) < 4 {
		return block{}, status.DataLossf("a block has %d bytes", len(b))
	}
	body := b[:len(b)-4]
	n := uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	if n > uint64(len(body)/4) {
		return block{}, status.DataLossf("a block of %d bytes claims %d restarts", len(b), n)
	}
	at := len(body) - 4*int(n)
	return block{body[:at], body[at:]}, nil
}

// all iterates over the entries from a position on, which must be that of an entry with a complete
// key. A key is valid until the next iteration. The iteration ends at the first error, which it
// stores in *err.
func (b block) all(from int, err *error) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		var key []byte
		for rest := b.entries[from:]; len(rest) > 0; {
			shared, delta, value, next, ok := parseEntry(rest)
			if !ok || shared > uint64(len(key)) {
				*err = status.DataLossf("a block has a bad entry at byte %d", len(b.entries)-len(rest))
				return
			}
			key = append(key[:shared], delta...)
			if !yield(key, value) {
				return
			}
			rest = next
		}
	}
}

// parseEntry parses an entry at the start of b and returns the rest of b.
func parseEntry(b []byte) (shared uint64, delta, value, rest []byte, ok bool) {
	var sizes [3]uint64
	for i := range sizes {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, nil, nil, nil, false
		}
		sizes[i], b = v, b[n:]
	}
	left := uint64(len(b))
	if sizes[1] > left || sizes[2] > left-sizes[1] {
		return 0, nil, nil, nil, false
	}
	delta, b = b[:sizes[1]], b[sizes[1]:]
	return sizes[0], delta, b[:sizes[2]], b[sizes[2]:], true
}

// seek returns the first entry whose key is not smaller than key. ok is false if there is none.
func (b block) seek(key []byte) (k, value []byte, ok bool, err error) {
	from, err := b.restartBefore(key)
	if err != nil {
		return nil, nil, false, err
	}
	for k, v := range b.all(from, &err) {
		if bytes.Compare(k, key) >= 0 {
			return k, v, true, nil
		}
	}
	return nil, nil, false, err
}

// restartBefore returns the position of the last restart whose key is smaller than key, or of the
// first restart.
func (b block) restartBefore(key []byte) (int, error) {
	lo, hi := 0, len(b.restarts)/4-1
	for lo < hi {
		mid := (lo + hi + 1) / 2
		_, k, err := b.restart(mid)
		if err != nil {
			return 0, err
		}
		if bytes.Compare(k, key) < 0 {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	if len(b.entries) == 0 || len(b.restarts) == 0 {
		return 0, nil
	}
	at, _, err := b.restart(lo)
	return at, err
}

// restart returns the position and the key of restart i.
func (b block) restart(i int) (int, []byte, error) {
	at := uint64(binary.LittleEndian.Uint32(b.restarts[4*i:]))
	if at < uint64(len(b.entries)) {
		if shared, key, _, _, ok := parseEntry(b.entries[at:]); ok && shared == 0 {
			return int(at), key, nil
		}
	}
	return 0, nil, status.DataLossf("a block has a bad restart %d", i)
}
