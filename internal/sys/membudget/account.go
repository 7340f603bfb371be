package membudget

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Account bounds the memory of tensors that belong to one owner: a step, a session or a tenant. A
// charge of an account is a charge of all accounts above it. The methods may be called
// concurrently, and on a nil account, which bounds nothing.
//
// Accounts exist only where an owner has a limit. So a task without such limits pays a comparison
// with nil for each output of a node.
type Account struct {
	parent *Account
	name   string       // of the kind of owner, for errors
	flag   string       // of weft server that sets the limit
	limit  atomic.Int64 // bytes; 0 for none
	used   atomic.Int64
	over   func() // called when a charge is refused
}

// NewAccount returns an account below parent, which may be nil. The name and the flag are for
// errors. A limit of 0 bounds nothing. over is called when a charge is refused; it may be nil.
func NewAccount(parent *Account, name, flag string, limit int64, over func()) *Account {
	a := &Account{parent: parent, name: name, flag: flag, over: over}
	a.limit.Store(limit)
	return a
}

// SetLimit changes the limit. What is charged already stays.
func (a *Account) SetLimit(bytes int64) { a.limit.Store(bytes) }

// Owner returns the account above a; nil if there is none.
func (a *Account) Owner() *Account {
	if a == nil {
		return nil
	}
	return a.parent
}

// Used returns the number of bytes that are charged.
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used.Load()
}

// Name returns the kind of owner, as in "session".
func (a *Account) Name() string { return a.name }

// Limit returns the limit in bytes and the flag that sets it.
func (a *Account) Limit() (bytes int64, flag string) { return a.limit.Load(), a.flag }

// Fits returns the first account from a upwards that n bytes more would take over its limit, or nil
// if there is none. It charges nothing.
func (a *Account) Fits(n int64) *Account { return a.must(n, (*Account).fits) }

func (a *Account) fits(n int64) *Account {
	for at := a; at != nil; at = at.parent {
		if limit := at.limit.Load(); limit > 0 && at.used.Load()+n > limit {
			return at
		}
	}
	return nil
}

// must calls try, which returns the account that would exceed its limit. If there is one, it tries
// again without garbage.
func (a *Account) must(n int64, try func(*Account, int64) *Account) *Account {
	over := try(a, n)
	if over == nil {
		return nil
	}
	if over = garbage.settle(func() *Account { return try(a, n) }); over != nil && over.over != nil {
		over.over()
	}
	return over
}

// charge adds n bytes. If an account would exceed its limit, it charges none and returns that one.
func (a *Account) charge(n int64) *Account { return a.must(n, (*Account).add) }

func (a *Account) add(n int64) *Account {
	for at := a; at != nil; at = at.parent {
		if used, limit := at.used.Add(n), at.limit.Load(); limit > 0 && used > limit {
			for undo := a; undo != at.parent; undo = undo.parent {
				undo.used.Add(-n)
			}
			return at
		}
	}
	return nil
}

// Message returns the text of the error of a node whose tensor of n bytes would take a over its
// limit.
func (a *Account) Message(n int64) string {
	return fmt.Sprintf("OOM when allocating %d bytes: the memory of a %s is limited to %d MiB (%s). %d MiB are in use.",
		n, a.name, a.limit.Load()>>20, a.flag, a.used.Load()>>20)
}

// ChargeTensor charges the memory of a *tensor.Tensor to an account, unless an account pays for it
// already. It returns the account whose limit would be exceeded, or nil. The charge ends when the
// memory is freed. Package tensor sets it when it is initialized.
var ChargeTensor func(tensor any, a *Account) (over *Account)

// Charge is memory that an account pays for until End.
type Charge struct {
	account *Account
	bytes   int64
	ended   atomic.Bool
}

// Charge charges n bytes to a, which is not nil, and to the accounts above it. If one of them would
// exceed its limit, it returns that one, and nothing is charged.
func (a *Account) Charge(n int64) (*Charge, *Account) {
	if over := a.charge(n); over != nil {
		return nil, over
	}
	return &Charge{account: a, bytes: n}, nil
}

// End gives the bytes back. Only the first call has an effect.
func (c *Charge) End() {
	if c.ended.Swap(true) {
		return
	}
	c.account.giveBack(c.bytes)
}

// Holding is the memory of a resource that is in no tensor, such as the text of the keys of a
// table. Each part is charged to the account that has asked for it. It may be used concurrently.
// The zero Holding is empty. A garbage collection of the owner, or End, gives everything back.
type Holding struct{ parts *holdingParts }

type holdingParts struct {
	mu    sync.Mutex
	all   []holdingPart // guarded by mu
	ended bool          // guarded by mu
}

// holdingPart is what one account pays.
type holdingPart struct {
	account *Account
	bytes   int64
}

// NewHolding returns an empty Holding.
func NewHolding() *Holding {
	h := &Holding{parts: &holdingParts{}}
	runtime.AddCleanup(h, (*holdingParts).end, h.parts)
	return h
}

// Grow charges n bytes more to the owner of the account of a step, which may be nil, and to the
// accounts above it. If one of them would exceed its limit, it returns that one, and nothing is
// charged.
func (h *Holding) Grow(step *Account, n int64) *Account {
	a := step.Owner()
	if a == nil || n == 0 {
		return nil
	}
	p := h.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	if over := a.charge(n); over != nil {
		return over
	}
	for i := range p.all {
		if p.all[i].account == a {
			p.all[i].bytes += n
			return nil
		}
	}
	p.all = append(p.all, holdingPart{a, n})
	return nil
}

// Shrink gives n bytes back, first those that were charged last.
func (h *Holding) Shrink(n int64) {
	p := h.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	for n > 0 && len(p.all) > 0 {
		last := &p.all[len(p.all)-1]
		part := min(n, last.bytes)
		last.account.giveBack(part)
		last.bytes -= part
		n -= part
		if last.bytes == 0 {
			p.all = p.all[:len(p.all)-1]
		}
	}
}

// End gives everything back. Later calls have no effect.
func (h *Holding) End() { h.parts.end() }

func (p *holdingParts) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.all {
		part.account.giveBack(part.bytes)
	}
	p.all, p.ended = nil, true
}

// giveBack ends a charge of n bytes.
func (a *Account) giveBack(n int64) {
	for ; a != nil; a = a.parent {
		a.used.Add(-n)
	}
}
