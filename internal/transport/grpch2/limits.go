package grpch2

import (
	"fmt"
	"time"
)

// Limits bound what the clients of a server may use. Zero turns a limit off.
type Limits struct {
	Connections        int           // open connections
	AddressConnections int           // open connections from one IP address
	NameConnections    int           // open connections of one client, by Server.NameOf
	Handshake          time.Duration // for the connection preface and the first SETTINGS
	// Frame bounds how long a frame other than DATA, or a header block, may be incomplete, and how
	// long no byte of a DATA frame may arrive.
	Frame time.Duration
	// Idle is how long a connection may have no stream. Connections of tasks may forever.
	Idle     time.Duration
	Request  time.Duration // without a byte of a request that is incomplete
	Response time.Duration // without the client taking a byte of a response
	// Keepalive detects clients that have vanished.
	Keepalive Keepalive
	// Streams bounds the concurrent streams of a connection, and TaskStreams those of the
	// connection of a task. 65,536 is the most.
	Streams     int
	TaskStreams int
	RequestSize int // of a request of clients, in bytes
	GraphSize   int // of a request of clients that carries a graph, in bytes
	// Decompression bounds the size of a decompressed message: this many times the size of the
	// compressed message, and 1 MiB.
	Decompression int
}

// DefaultLimits returns the limits of a server that sets none.
func DefaultLimits() Limits {
	return Limits{
		Connections: 10_000, AddressConnections: 1000, NameConnections: 256,
		Handshake: 10 * time.Second, Frame: 30 * time.Second, Idle: 10 * time.Minute, Request: time.Minute, Response: time.Minute,
		Keepalive: DefaultKeepalive, Streams: 1000, TaskStreams: 1 << 16,
		RequestSize: 1 << 30, GraphSize: 512 << 20, Decompression: 100,
	}
}

// A Limit is one of Limits.
type Limit int

// The limits.
const (
	LimitConnections Limit = iota
	LimitAddressConnections
	LimitNameConnections
	LimitHandshake
	LimitFrame
	LimitIdle
	LimitRequest
	LimitResponse
	LimitStreams
	LimitRequestSize
	LimitGraphSize
	LimitDecompression
	LimitKeepalive
	numLimits
)

var limitNames = [numLimits]struct{ label, flag string }{
	LimitConnections:        {"connections", "--max-connections"},
	LimitAddressConnections: {"address_connections", "--max-connections-per-address"},
	LimitNameConnections:    {"principal_connections", "--max-connections-per-principal"},
	LimitHandshake:          {"handshake", "--handshake-timeout"},
	LimitFrame:              {"frame", "--frame-timeout"},
	LimitIdle:               {"idle", "--idle-timeout"},
	LimitRequest:            {"request", "--request-timeout"},
	LimitResponse:           {"response", "--response-timeout"},
	LimitStreams:            {"streams", "--max-streams"},
	LimitRequestSize:        {"request_size", "--max-request-size"},
	LimitGraphSize:          {"graph_size", "--max-graph-size"},
	LimitDecompression:      {"decompression", "--max-decompression"},
	LimitKeepalive:          {"keepalive", "--keepalive-timeout"},
}

// String returns the name of a limit in metrics.
func (l Limit) String() string { return limitNames[l].label }

// Flag returns the flag of weft server that sets the limit.
func (l Limit) Flag() string { return limitNames[l].flag }

// text returns an error text that names the value of the limit and its flag.
func (l Limit) text(what string, value any) string {
	return fmt.Sprintf("%s (%v, set by %s)", what, value, l.Flag())
}

// hit counts a client that has reached a limit.
func (s *Server) hit(l Limit) { s.hits[l].Add(1) }

// Limited returns how often clients have reached each limit, by its name.
func (s *Server) Limited() map[string]uint64 {
	out := make(map[string]uint64, numLimits)
	for l := range numLimits {
		out[l.String()] = s.hits[l].Load()
	}
	return out
}

// An Audience is the kind of callers that a method is for.
type Audience int

// Audiences.
const (
	Everyone     Audience = iota
	Clients               // Limits.RequestSize bounds the requests
	GraphClients          // Limits.GraphSize bounds the requests
	Tasks                 // the caller is a task of the cluster
)

// maxRequest returns the largest request of a method in bytes, and the limit that it comes from.
func (s *Server) maxRequest(m *method) (size int, l Limit) {
	size = maxMessage
	switch m.Audience {
	case Clients:
		size, l = s.Limits.RequestSize, LimitRequestSize
	case GraphClients:
		size, l = s.Limits.GraphSize, LimitGraphSize
	case Everyone, Tasks:
	}
	if size <= 0 || size > maxMessage {
		size = maxMessage
	}
	return size, l
}

// checkSize returns an error for a request of n bytes that is too large.
func (c *Call) checkSize(n int) *callError {
	if largest, l := c.conn.server.maxRequest(c.method); n > largest {
		c.conn.server.hit(l)
		return &callError{code: codeResourceExhausted, text: l.text("Received message larger than max", fmt.Sprintf("%d vs. %d", n, largest))}
	}
	return nil
}

// decompressedBounds returns the largest size of a message that has n bytes compressed, and the
// limit that it comes from.
func (c *Call) decompressedBounds(n int) (size int, l Limit) {
	const free = 1 << 20
	size, l = c.conn.server.maxRequest(c.method)
	if ratio := c.conn.server.Limits.Decompression; ratio > 0 && n < (size-free)/ratio {
		return ratio*n + free, LimitDecompression
	}
	return size, l
}

// streamLimit returns how many streams the client may have open.
func (c *serverConn) streamLimit() int {
	n := c.server.Limits.Streams
	if c.task.Load() {
		n = c.server.Limits.TaskStreams
	}
	if n <= 0 || n > ownMaxStreams {
		return ownMaxStreams
	}
	return n
}

// calledAsTask notes that the client calls a method for tasks, which may have more streams.
func (c *serverConn) calledAsTask() error {
	before := c.streamLimit()
	c.task.Store(true)
	if after := c.streamLimit(); after != before {
		return c.out.queueControl(appendFrame(nil, frameSettings, 0, 0, appendSetting(nil, settingMaxStreams, uint32(after))))
	}
	return nil
}
