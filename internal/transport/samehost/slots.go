package samehost

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

const (
	// maxSlotted is the size in bytes up to which tensors are given back through slots: what is in
	// them may be kept until the lender looks, so that it is to be no more than 64 MiB for each
	// channel.
	maxSlotted = 2 << 20
	numSlots   = 32
	slotsSize  = numSlots * 8
	// slotsTicket is what a borrower sends with the memory of slots, in the place of a ticket.
	slotsTicket = ^uint64(0)
)

// slots is memory that both ends of a channel have. The borrower gives a tensor back by writing its
// ticket to the slot that it has got with it, which takes no system call and wakes nobody. The
// lender looks when it lends the next, when somebody wants the tensor's memory to himself, and when
// the step ends.
type slots struct {
	mem   []byte
	loans [numSlots]*loan // the lender's, by slot; guarded by Lender.mu
	used  int             // how many of them there are; guarded by Lender.mu
}

// slotsOver returns slots in shared memory, which release gives up when nobody has the slots any
// more.
func slotsOver(mem []byte, release func([]byte)) *slots {
	s := &slots{mem: mem}
	runtime.AddCleanup(s, release, mem)
	return s
}

func (s *slots) word(i int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&s.mem[8*i])) }

// giveBack says that the tensor of a ticket is no longer read. It reports false if there is no such
// slot.
func (s *slots) giveBack(slot, ticket uint64) bool {
	if s == nil || slot == 0 || slot > numSlots {
		return false
	}
	s.word(int(slot - 1)).Store(ticket)
	runtime.KeepAlive(s)
	return true
}

// take gives a loan a slot, and returns its number from 1 on: 0 if all are taken.
func (s *slots) take(n *loan) uint64 {
	for i := range s.loans {
		if s.loans[i] == nil {
			s.loans[i], n.slots, n.slot = n, s, i
			s.used++
			return uint64(i + 1)
		}
	}
	return 0
}

// leave gives up the slot of a loan.
func (n *loan) leave() {
	if s := n.slots; s != nil {
		s.loans[n.slot], n.slots = nil, nil
		s.used--
	}
}

// sweepLocked ends the loans that were given back through slots.
func (l *Lender) sweepLocked(s *slots) {
	if s == nil || s.used == 0 {
		return
	}
	for i, n := range s.loans {
		if n == nil {
			continue
		}
		if ticket := n.word.Load(); s.word(i).Load() == ticket {
			l.endLocked(ticket, n)
		}
	}
	runtime.KeepAlive(s)
}

// sweep ends all loans that were given back.
func (l *Lender) sweep() {
	if l.held.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.channels {
		l.sweepLocked(s)
	}
}
