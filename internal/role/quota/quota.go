// Package quota bounds what clients have on a task: sessions, partial runs, prepared steps, the
// time of steps, and the memory of steps, sessions and tenants. The master and the worker of a task
// share one [Quota].
package quota

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Limits are the limits of a task. Zero turns one off.
type Limits struct {
	Sessions    int // open sessions of clients
	PartialRuns int // partial runs of a session that have not ended
	Callables   int // prepared steps of a session
	StepTime    time.Duration
	// PartialRun is how long a partial run may be without a call.
	PartialRun time.Duration

	StepMemory, SessionMemory, TenantMemory int64 // bytes of tensors
}

// A Limit is one of Limits.
type Limit int

// The limits.
const (
	Sessions Limit = iota
	PartialRuns
	Callables
	StepTime
	PartialRunTime
	StepMemory
	SessionMemory
	TenantMemory
	numLimits
)

var names = [numLimits]struct{ label, flag, what string }{
	Sessions:       {"sessions", "--max-sessions", "sessions of the task"},
	PartialRuns:    {"partial_runs", "--max-partial-runs", "partial runs of the session"},
	Callables:      {"callables", "--max-callables", "prepared steps of the session"},
	StepTime:       {"step_time", "--max-step-time", ""},
	PartialRunTime: {"partial_run_time", "--partial-run-timeout", ""},
	StepMemory:     {"step_memory", "--max-step-memory", "step"},
	SessionMemory:  {"session_memory", "--max-session-memory", "session"},
	TenantMemory:   {"tenant_memory", "--max-tenant-memory", "tenant"},
}

// Flag returns the flag of weft server that sets the limit.
func (l Limit) Flag() string { return names[l].flag }

// Quota holds the limits of a task and what is counted against them. It may be used concurrently. A
// nil Quota has no limits.
type Quota struct {
	Limits
	hits [numLimits]atomic.Uint64

	mu sync.Mutex
	// accounts of tenants, which are as many as the certificates name; guarded by mu
	tenants map[string]*membudget.Account
}

// New returns the quota of a task.
func New(l Limits) *Quota {
	return &Quota{Limits: l, tenants: map[string]*membudget.Account{}}
}

// Check returns ResourceExhausted if n things are as many as the limit allows.
func (q *Quota) Check(l Limit, n int) error {
	if q == nil {
		return nil
	}
	var most int
	switch l {
	case Sessions:
		most = q.Limits.Sessions
	case PartialRuns:
		most = q.Limits.PartialRuns
	case Callables:
		most = q.Limits.Callables
	default:
	}
	if most <= 0 || n < most {
		return nil
	}
	q.Hit(l)
	return status.ResourceExhaustedf("The %s have reached their limit (%d, set by %s).", names[l].what, most, l.Flag())
}

// Hit counts a client that has reached a limit.
func (q *Quota) Hit(l Limit) { q.hits[l].Add(1) }

// Limited returns how often clients have reached each limit, by its name.
func (q *Quota) Limited() map[string]uint64 {
	out := make(map[string]uint64, numLimits)
	for l := range numLimits {
		out[names[l].label] = q.hits[l].Load()
	}
	return out
}

// TenantMemory returns the bytes that are charged to each tenant, if tenants have accounts.
func (q *Quota) TenantMemory() map[string]int64 {
	out := map[string]int64{}
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, a := range q.tenants {
		out[name] = a.Used()
	}
	return out
}

// hasAccounts reports whether memory is charged to owners.
func (q *Quota) hasAccounts() bool {
	return q != nil && (q.StepMemory > 0 || q.SessionMemory > 0 || q.Limits.TenantMemory > 0)
}

// SessionAccount returns the account of a new session of a tenant; nil if memory is not charged to
// owners. The tenant "" is that of all sessions whose client has no name.
func (q *Quota) SessionAccount(tenant string) *membudget.Account {
	if !q.hasAccounts() {
		return nil
	}
	q.mu.Lock()
	a := q.tenants[tenant]
	if a == nil {
		a = q.account(nil, TenantMemory, q.Limits.TenantMemory)
		q.tenants[tenant] = a
	}
	q.mu.Unlock()
	return q.account(a, SessionMemory, q.SessionMemory)
}

// StepAccount returns the account of a new step of a session, whose account may be nil.
func (q *Quota) StepAccount(session *membudget.Account) *membudget.Account {
	if session == nil {
		return nil
	}
	return q.account(session, StepMemory, q.StepMemory)
}

func (q *Quota) account(parent *membudget.Account, l Limit, bytes int64) *membudget.Account {
	return membudget.NewAccount(parent, names[l].what, l.Flag(), bytes, func() { q.Hit(l) })
}
