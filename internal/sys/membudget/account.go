package membudget

import (
	"fmt"
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
	name   string // of the kind of owner, for errors
	flag   string // of weft server that sets the limit
	limit  int64  // bytes; 0 for none
	used   atomic.Int64
	over   func() // called when a charge is refused
}

// NewAccount returns an account below parent, which may be nil. The name and the flag are for
// errors. A limit of 0 bounds nothing. over is called when a charge is refused; it may be nil.
func NewAccount(parent *Account, name, flag string, limit int64, over func()) *Account {
	return &Account{parent: parent, name: name, flag: flag, limit: limit, over: over}
}

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
func (a *Account) Limit() (bytes int64, flag string) { return a.limit, a.flag }

// Fits returns the first account from a upwards that n bytes more would take over its limit, or nil
// if there is none. It charges nothing.
func (a *Account) Fits(n int64) *Account {
	for at := a; at != nil; at = at.parent {
		if at.limit > 0 && at.used.Load()+n > at.limit {
			at.refuse()
			return at
		}
	}
	return nil
}

// charge adds n bytes. If an account would exceed its limit, it charges none and returns that one.
func (a *Account) charge(n int64) *Account {
	for at := a; at != nil; at = at.parent {
		if used := at.used.Add(n); at.limit > 0 && used > at.limit {
			for undo := a; undo != at.parent; undo = undo.parent {
				undo.used.Add(-n)
			}
			at.refuse()
			return at
		}
	}
	return nil
}

// Message returns the text of the error of a node whose tensor of n bytes would take a over its
// limit.
func (a *Account) Message(n int64) string {
	return fmt.Sprintf("OOM when allocating %d bytes: the memory of a %s is limited to %d MiB (%s). %d MiB are in use.",
		n, a.name, a.limit>>20, a.flag, a.used.Load()>>20)
}

func (a *Account) refuse() {
	if a.over != nil {
		a.over()
	}
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
// exceed its limit, it returns that one and charges nothing.
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
	for a := c.account; a != nil; a = a.parent {
		a.used.Add(-c.bytes)
	}
}
