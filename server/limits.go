package server

import (
	"context"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/grpch2"
)

// Limits bound what the clients of a server may use, so that one of them cannot take the server
// from the others. Zero turns a limit off. A client that reaches a limit gets the error
// RESOURCE_EXHAUSTED, or the reason in a GOAWAY frame.
type Limits struct {
	// Connections bounds the open connections, and ConnectionsPerAddress those from one IP address.
	// ConnectionsPerPrincipal bounds those of one client with a certificate. Tasks of the cluster
	// always get in.
	Connections             int
	ConnectionsPerAddress   int
	ConnectionsPerPrincipal int

	Handshake time.Duration // for the HTTP/2 handshake
	Frame     time.Duration // for a frame or header block that has begun
	Idle      time.Duration // of a connection without a call; tasks may be idle forever
	Request   time.Duration // without a byte of a request that has begun
	Response  time.Duration // without the client taking a byte of a response

	// Keepalive is how long nothing may arrive from the other end of a connection while a call is
	// open, before it is asked for a sign of life. If nothing arrives for KeepaliveTimeout after
	// that, the connection is closed, and its calls fail with Unavailable. Both times apply to the
	// connections of clients and to those to other tasks.
	Keepalive        time.Duration
	KeepaliveTimeout time.Duration

	// Streams bounds the concurrent calls of one connection, and TaskStreams those of the
	// connection of a task. 65,536 is the most.
	Streams     int
	TaskStreams int

	RequestSize int64 // of a client's request, in bytes
	GraphSize   int64 // of a request that creates or extends a session, in bytes
	// Decompression bounds the size of a compressed request: this many times what was received, and
	// 1 MiB.
	Decompression int

	Sessions             int // open sessions of clients
	SessionsPerPrincipal int // open sessions of one client with a certificate
	PartialRuns          int // partial runs of a session that have not ended
	Callables            int // prepared steps of a session

	// GraphNodes, GraphEdges (inputs of nodes) and GraphFunctions bound the graph of a session, and
	// of each request.
	GraphNodes, GraphEdges, GraphFunctions int

	// EarlySteps bounds the steps for which other tasks wait before their masters start them, and
	// EarlyStepsPerPeer those for which one task waits.
	EarlySteps        int
	EarlyStepsPerPeer int

	TraceRecords int // executions of nodes in the trace of a device; the rest is left out

	StepTime   time.Duration // of a step; its client may ask for less
	PartialRun time.Duration // without a call of a partial run

	// StepMemory, SessionMemory and TenantMemory bound the tensors that a step, the steps of a
	// session, and those of all sessions of a tenant have in memory on the task, in bytes. What a
	// variable, a queue or a table holds belongs to the session and the tenant of the step that
	// made it, until it is freed. Without certificates, all clients are one tenant.
	StepMemory, SessionMemory, TenantMemory int64
}

// DefaultLimits returns the limits that a server has without [WithLimits].
//
// A request of 1 GiB holds a data set that a program feeds to initialize an iterator, as
// TensorFlow's guides do. A graph of 512 MiB has about 4 million nodes, or a data set of some
// hundred MiB as a constant.
func DefaultLimits() Limits {
	w, q := grpch2.DefaultLimits(), quota.Default()
	return Limits{
		Connections: w.Connections, ConnectionsPerAddress: w.AddressConnections, ConnectionsPerPrincipal: w.NameConnections,
		Handshake: w.Handshake, Frame: w.Frame, Idle: w.Idle, Request: w.Request, Response: w.Response,
		Keepalive: w.Keepalive.Interval, KeepaliveTimeout: w.Keepalive.Timeout,
		Streams: w.Streams, TaskStreams: w.TaskStreams,
		RequestSize: int64(w.RequestSize), GraphSize: int64(w.GraphSize), Decompression: w.Decompression,
		Sessions: q.Sessions, SessionsPerPrincipal: q.PrincipalSessions,
		PartialRuns: q.PartialRuns, Callables: q.Callables, PartialRun: q.PartialRun,
		GraphNodes: q.Nodes, GraphEdges: q.Edges, GraphFunctions: q.Functions,
		EarlySteps: q.EarlySteps, EarlyStepsPerPeer: q.PeerEarlySteps, TraceRecords: q.TraceRecords,
	}
}

// wire returns the limits of the transport.
func (l *Limits) wire() grpch2.Limits {
	return grpch2.Limits{
		Connections: l.Connections, AddressConnections: l.ConnectionsPerAddress, NameConnections: l.ConnectionsPerPrincipal,
		Handshake: l.Handshake, Frame: l.Frame, Idle: l.Idle, Request: l.Request, Response: l.Response, Keepalive: l.keepalive(),
		Streams: l.Streams, TaskStreams: l.TaskStreams,
		RequestSize: int(l.RequestSize), GraphSize: int(l.GraphSize), Decompression: l.Decompression,
	}
}

// quota returns the limits of master and worker.
func (l *Limits) quota() quota.Limits {
	return quota.Limits{
		Sessions: l.Sessions, PrincipalSessions: l.SessionsPerPrincipal,
		Nodes: l.GraphNodes, Edges: l.GraphEdges, Functions: l.GraphFunctions,
		EarlySteps: l.EarlySteps, PeerEarlySteps: l.EarlyStepsPerPeer, TraceRecords: l.TraceRecords,
		PartialRuns: l.PartialRuns, Callables: l.Callables, StepTime: l.StepTime, PartialRun: l.PartialRun,
		StepMemory: l.StepMemory, SessionMemory: l.SessionMemory, TenantMemory: l.TenantMemory,
	}
}

func (l *Limits) keepalive() grpch2.Keepalive {
	return grpch2.Keepalive{Interval: l.Keepalive, Timeout: l.KeepaliveTimeout}
}

// Limited returns how often clients have reached each limit, by the name of the limit.
func (s *Server) Limited() map[string]uint64 {
	out := s.rpc.Limited()
	maps.Copy(out, s.quota.Limited())
	maps.Copy(out, s.files.Limited())
	out["memory"] = membudget.Refused()
	return out
}

const (
	// lookupInterval is how long the addresses of a cluster's hosts are kept.
	lookupInterval = 30 * time.Second
	// lookupTimeout bounds the lookup of all hosts.
	lookupTimeout = 2 * time.Second
)

// taskAddresses knows the IP addresses of the hosts of a cluster. It may be used concurrently.
type taskAddresses struct {
	hosts  map[string]bool
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

	mu      sync.Mutex
	known   map[netip.Addr]bool // guarded by mu
	expires time.Time           // of known; guarded by mu
}

// newTaskAddresses returns the addresses of a cluster. It looks nothing up yet.
func newTaskAddresses(spec cluster.Spec) *taskAddresses {
	a := &taskAddresses{hosts: map[string]bool{}, lookup: net.DefaultResolver.LookupNetIP}
	for _, task := range spec.Tasks() {
		if host, _, err := net.SplitHostPort(spec.Address(task)); err == nil {
			a.hosts[host] = true
		}
	}
	return a
}

// has reports whether a task may have an address. It may look hosts up, which takes at most
// lookupTimeout and happens once in lookupInterval.
func (a *taskAddresses) has(ip netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); !now.Before(a.expires) {
		a.refreshLocked()
		a.expires = time.Now().Add(lookupInterval)
	}
	return a.known[ip]
}

// refreshLocked looks all hosts up. A host that cannot be looked up keeps its addresses.
func (a *taskAddresses) refreshLocked() {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	var wg sync.WaitGroup
	found := make(chan []netip.Addr, len(a.hosts))
	for host := range a.hosts {
		wg.Go(func() {
			ips, err := a.lookup(ctx, "ip", host)
			if err == nil {
				found <- ips
			}
		})
	}
	wg.Wait()
	close(found)
	if a.known == nil || len(found) == len(a.hosts) {
		a.known = map[netip.Addr]bool{}
	}
	for ips := range found {
		for _, ip := range ips {
			a.known[ip.Unmap()] = true
		}
	}
}
