package samehost

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/role/message"
)

// maxKnown bounds the tensors of a peer that are remembered. Beyond it, all are forgotten.
const maxKnown = 4096

// habit is how a tensor came when it was asked for last.
type habit int8

const (
	together habit = iota // it may travel with others
	alone                 // it is too large for that, or no plain elements
	large                 // it came as many bytes
)

// known is what a borrower remembers of the tensors of a peer, by the names of their edges, so as
// to ask in the right way at once: those that were too large to travel with others alone, and those
// that were large over a connection on which no small message waits for them.
type known struct {
	count atomic.Int32 // of habits

	mu     sync.Mutex
	habits map[string]habit // guarded by mu; of those that do not travel with others
}

// edge returns the part of a key that is the same in all iterations of a loop.
func edge(key string) string {
	if at := strings.LastIndexByte(key, ';'); at >= 0 {
		return key[:at]
	}
	return key
}

// of returns how a tensor came last.
func (k *known) of(key string) habit {
	if k.count.Load() == 0 {
		return together
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.habits[edge(key)]
}

// learn remembers how a tensor has come.
func (k *known) learn(key string, h habit) {
	if h == together && k.count.Load() == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	switch old, ok := k.habits[edge(key)]; {
	case h == old:
		return
	case h == together:
		delete(k.habits, edge(key))
	default:
		if k.habits == nil || !ok && len(k.habits) == maxKnown {
			k.habits = map[string]habit{}
		}
		k.habits[strings.Clone(edge(key))] = h
	}
	k.count.Store(int32(len(k.habits)))
}

// forget makes everything be asked for as if it had never come.
func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.habits = nil
	k.count.Store(0)
}

// habitOf returns how a tensor has come that is in a response.
func habitOf(resp *message.RecvTensorResponse) habit {
	switch n := len(resp.Tensor.Bytes()); {
	case n >= minLent:
		return large
	case n > maxPacked || resp.Tensor.Initialized() && !lendable(resp.Tensor.DType()):
		return alone
	}
	return together
}
