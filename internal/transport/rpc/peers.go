package rpc

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/status"
)

// Connections holds the connections of one task, one for each address. They are created on first
// use.
type Connections struct {
	// Keepalive detects tasks that have vanished. It must be set before the first use.
	Keepalive grpch2.Keepalive
	// Observer is notified of calls; nil for none. It must be set before the first use.
	Observer grpch2.CallObserver
	// Tracer makes spans of calls; nil for none. It must be set before the first use.
	Tracer grpch2.CallTracer

	limiter *ReceiveLimiter
	// Credentials returns the certificates for connections to a task, nil for connections without
	// TLS. It is set before the first connection; nil means that no connection has TLS.
	Credentials func(cluster.Task) *secure.Credentials

	mu     sync.Mutex
	closed bool            // guarded by mu
	conns  map[route]*Conn // guarded by mu
}

// route is what a connection leads to.
type route struct {
	address string
	task    cluster.Task // that the certificate must name; zero without TLS
}

// NewConnections returns an empty set, whose responses share a limiter with all other receives of
// the task.
func NewConnections(limiter *ReceiveLimiter) *Connections {
	return &Connections{Keepalive: grpch2.DefaultKeepalive, limiter: limiter, conns: map[route]*Conn{}}
}

// To returns the connection to a task at an address. The set owns it.
func (c *Connections) To(address string, task cluster.Task) (*Conn, error) {
	var creds *secure.Credentials
	if c.Credentials != nil {
		creds = c.Credentials(task)
	}
	to := route{address: address}
	if creds != nil {
		to.task = task
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, status.Unavailablef("the task is shutting down")
	}
	if conn, ok := c.conns[to]; ok {
		return conn, nil
	}
	conn, err := connect(address, c.limiter, over(creds, task, address))
	if err != nil {
		return nil, err
	}
	conn.client.Keepalive, conn.client.Observer, conn.client.Peer = c.Keepalive, c.Observer, task.Short()
	conn.client.Tracer = c.Tracer
	conn.number = len(c.conns)
	c.conns[to] = conn
	return conn, nil
}

// all returns the connections, in no particular order.
func (c *Connections) all() []*Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.conns))
}

// Close closes all connections. Calls over them fail.
func (c *Connections) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.conns {
		conn.Close()
	}
	clear(c.conns)
}

// Peers holds the clients of the tasks of a cluster.
type Peers struct {
	// NameOf returns the name of a task in its certificate; nil for the name in the cluster. It is
	// set before the first use.
	NameOf func(cluster.Task) cluster.Task

	cluster cluster.Spec
	conns   *Connections

	mu     sync.Mutex
	tasks  map[cluster.Task]*WorkerClient // guarded by mu
	byName map[string]*WorkerClient       // guarded by mu
}

// NewPeers returns clients of the tasks of a cluster over conns. The cluster must not be modified.
func NewPeers(spec cluster.Spec, conns *Connections) *Peers {
	return &Peers{cluster: spec, conns: conns, tasks: map[cluster.Task]*WorkerClient{}, byName: map[string]*WorkerClient{}}
}

// Worker returns the client of a task. It does not wait for a connection.
func (p *Peers) Worker(task cluster.Task) (*WorkerClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.tasks[task]; ok {
		return c, nil
	}
	address := p.cluster.Address(task)
	if address == "" {
		return nil, status.InvalidArgumentf("the cluster has no task %v", task)
	}
	conn, err := p.conns.To(address, p.certified(task))
	if err != nil {
		return nil, err
	}
	c := NewWorkerClient(conn, task.String())
	p.tasks[task], p.byName[task.String()] = c, c
	return c, nil
}

// certified returns the name of a task in its certificate.
func (p *Peers) certified(task cluster.Task) cluster.Task {
	if p.NameOf == nil {
		return task
	}
	return p.NameOf(task)
}

// Named returns the client of a task, "/job:ps/replica:0/task:0". It does not wait for a
// connection.
func (p *Peers) Named(task string) (*WorkerClient, error) {
	p.mu.Lock()
	c := p.byName[task]
	p.mu.Unlock()
	if c != nil {
		return c, nil
	}
	t, err := cluster.ParseTask(task)
	if err != nil {
		return nil, err
	}
	return p.Worker(t)
}

// StartRecv requests a tensor from a task. done is called once, possibly on the goroutine that
// reads the connection, and must not block.
func (p *Peers) StartRecv(
	ctx context.Context, task string, req *message.RecvTensorRequest, done func(*message.RecvTensorResponse, error),
) {
	c, err := p.Named(task)
	if err != nil {
		done(nil, err)
		return
	}
	c.StartRecv(ctx, req, done)
}
