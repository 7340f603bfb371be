package grpch2

// historySize is the number of recent stream IDs that a streamHistory knows about.
const historySize = 256

// A streamHistory knows how the recent streams of a client came to their end. Frames on a stream
// that the server has reset are late and ignored; frames on a stream that the client has ended are
// a breach of the protocol. The zero value is the history of a connection without streams. The
// holder of the read token uses it.
type streamHistory struct {
	opened, ended [historySize / 64]uint64 // bit i%historySize is for stream 2i+1
}

// endState tells how a stream ended that is not open.
type endState int

const (
	endedHere     endState = iota // by the server, or too long ago to know
	endedByClient                 // the client has sent END_STREAM or RST_STREAM
	neverOpened                   // a later stream was opened, which has closed this one
)

// open records a new stream. It closes those between the last one and the new one.
func (h *streamHistory) open(id, last uint32) {
	at, first := id/2, uint32(0)
	if last > 0 {
		first = last/2 + 1
	}
	if at-first >= historySize {
		*h, first = streamHistory{}, at
	}
	for i := first; ; i++ {
		word, bit := i%historySize/64, uint64(1)<<(i%64)
		h.opened[word] &^= bit
		h.ended[word] &^= bit
		if i == at {
			h.opened[word] |= bit
			return
		}
	}
}

// end records that the client has ended its half of a stream.
func (h *streamHistory) end(id uint32) {
	i := id / 2
	h.ended[i%historySize/64] |= 1 << (i % 64)
}

// state returns how a stream ended; last is the newest stream.
func (h *streamHistory) state(id, last uint32) endState {
	i := id / 2
	if last/2-i >= historySize {
		return endedHere
	}
	word, bit := i%historySize/64, uint64(1)<<(i%64)
	switch {
	case h.opened[word]&bit == 0:
		return neverOpened
	case h.ended[word]&bit != 0:
		return endedByClient
	}
	return endedHere
}
