// Package quota bounds what clients have on a task: sessions, graphs, partial runs, prepared steps,
// traces, the time of steps, and the memory of steps, sessions and tenants. The master, the worker
// and the services of a task share one [Quota].
package quota

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Limits are the limits of a task. Zero turns one off.
type Limits struct {
	Sessions          int // open sessions of clients
	PrincipalSessions int // open sessions of one client with a certificate

	// Nodes, Edges (inputs of nodes) and Functions bound the graph of a session, and of each
	// request.
	Nodes, Edges, Functions int

	PartialRuns int // partial runs of a session that have not ended
	Callables   int // prepared steps of a session
	StepTime    time.Duration
	// PartialRun is how long a partial run may be without a call.
	PartialRun time.Duration

	EarlySteps     int // steps for which other tasks wait before they start
	PeerEarlySteps int // the same for one other task
	TraceRecords   int // executions of nodes in the trace of a device

	StepMemory, SessionMemory, TenantMemory int64 // bytes of tensors
	// Weight multiplies TenantMemory for a tenant; nil for 1.
	Weight func(tenant string) float64
}

// A Limit is one of Limits.
type Limit int

// The limits.
const (
	Sessions Limit = iota
	PrincipalSessions
	Nodes
	Edges
	Functions
	PartialRuns
	Callables
	StepTime
	PartialRunTime
	SessionTime
	EarlySteps
	PeerEarlySteps
	TraceRecords
	StepMemory
	SessionMemory
	TenantMemory
	numLimits
)

// names describes the limits.
var names = [numLimits]struct {
	label, flag, what string
	// most returns the largest number; nil for limits of times and sizes
	most func(*Limits) int
	// always is true for limits that a nil Quota has, too
	always bool
}{
	Sessions:          {"sessions", "--max-sessions", "sessions of the task", func(l *Limits) int { return l.Sessions }, false},
	PrincipalSessions: {"principal_sessions", "--max-sessions-per-principal", "sessions of the client", func(l *Limits) int { return l.PrincipalSessions }, false},
	Nodes:             {"nodes", "--max-graph-nodes", "nodes of the graph", func(l *Limits) int { return l.Nodes }, true},
	Edges:             {"edges", "--max-graph-edges", "inputs of nodes (edges) of the graph", func(l *Limits) int { return l.Edges }, true},
	Functions:         {"functions", "--max-graph-functions", "functions of the graph", func(l *Limits) int { return l.Functions }, true},
	PartialRuns:       {"partial_runs", "--max-partial-runs", "partial runs of the session", func(l *Limits) int { return l.PartialRuns }, false},
	Callables:         {"callables", "--max-callables", "prepared steps of the session", func(l *Limits) int { return l.Callables }, false},
	StepTime:          {"step_time", "--max-step-time", "", nil, false},
	PartialRunTime:    {"partial_run_time", "--partial-run-timeout", "", nil, false},
	SessionTime:       {"session_time", "--session-ttl", "", nil, false},
	EarlySteps:        {"early_steps", "--max-early-steps", "steps for which other tasks wait before they start", func(l *Limits) int { return l.EarlySteps }, true},
	PeerEarlySteps:    {"peer_early_steps", "--max-early-steps-per-peer", "steps for which one task waits before they start", func(l *Limits) int { return l.PeerEarlySteps }, true},
	TraceRecords:      {"trace_records", "--max-trace-records", "", func(l *Limits) int { return l.TraceRecords }, true},
	StepMemory:        {"step_memory", "--max-step-memory", "step", nil, false},
	SessionMemory:     {"session_memory", "--max-session-memory", "session", nil, false},
	TenantMemory:      {"tenant_memory", "--max-tenant-memory", "tenant", nil, false},
}

// Default returns the limits of a task that sets none.
func Default() Limits {
	return Limits{
		Sessions: 10_000, PrincipalSessions: 1000,
		Nodes: 1_000_000, Edges: 8_000_000, Functions: 100_000,
		PartialRuns: 1000, Callables: 1000, PartialRun: 10 * time.Minute,
		EarlySteps: 1 << 16, PeerEarlySteps: 4096, TraceRecords: 1_000_000,
	}
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

// Most returns the largest number that a limit allows. A nil quota has the default limits of
// graphs, of steps that have not started and of traces, and no others.
func (q *Quota) Most(l Limit) int {
	of, most := names[l].most, 0
	switch {
	case of == nil:
	case q != nil:
		most = of(&q.Limits)
	case names[l].always:
		limits := Default()
		most = of(&limits)
	}
	if most <= 0 {
		return math.MaxInt
	}
	return most
}

// Check returns ResourceExhausted if n things are more than the limit allows.
func (q *Quota) Check(l Limit, n int) error {
	most := q.Most(l)
	if n <= most {
		return nil
	}
	q.Hit(l)
	return status.ResourceExhaustedf("The %s have reached their limit (%d, set by %s).", names[l].what, most, l.Flag())
}

// Hit counts a client that has reached a limit.
func (q *Quota) Hit(l Limit) {
	if q != nil {
		q.hits[l].Add(1)
	}
}

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
// owners. The tenant "" is that of all sessions whose client has no name. A weight that has changed
// takes effect with the next session of the tenant.
func (q *Quota) SessionAccount(tenant string) *membudget.Account {
	if !q.hasAccounts() {
		return nil
	}
	q.mu.Lock()
	limit := q.tenantLimit(tenant)
	a := q.tenants[tenant]
	if a == nil {
		a = q.account(nil, TenantMemory, limit)
		q.tenants[tenant] = a
	}
	a.SetLimit(limit)
	q.mu.Unlock()
	return q.account(a, SessionMemory, q.SessionMemory)
}

// tenantLimit returns the memory that a tenant may use; 0 for any.
func (q *Quota) tenantLimit(tenant string) int64 {
	all := q.Limits.TenantMemory
	if q.Weight == nil || all == 0 {
		return all
	}
	return int64(min(max(float64(all)*q.Weight(tenant), 1), math.MaxInt64/2))
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
