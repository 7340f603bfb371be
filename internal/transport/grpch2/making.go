package grpch2

import "sync/atomic"

// making tells whether a frame or header block is incomplete, for the sweep of a server. The reader
// changes it only when it is about to block, so small frames cost nothing.
type making struct {
	// number of the state "incomplete"; 0 if nothing is. It changes when the wait of the sweep
	// starts anew.
	seq atomic.Uint32

	// The following fields are guarded by the read token.
	last uint32 // last value of seq that is not 0
	on   bool   // seq is not 0
	data bool   // the frame is DATA: every byte starts the wait anew
}

// begin notes that something is incomplete.
func (m *making) begin() {
	if !m.on {
		m.restart()
	}
}

func (m *making) restart() {
	if m.last++; m.last == 0 {
		m.last = 1
	}
	m.on = true
	m.seq.Store(m.last)
}

// arrived notes that bytes of a frame have arrived.
func (m *making) arrived() {
	if m.data {
		m.restart()
	}
}

// end notes that nothing is incomplete.
func (m *making) end() {
	if m.on {
		m.on = false
		m.seq.Store(0)
	}
}
