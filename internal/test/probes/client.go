package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels"
)

// client is a connection to a server, with a context for its calls.
type client struct {
	ctx      context.Context
	conn     *rpc.Conn
	master   *rpc.MasterClient
	sessions []string // to close at the end
	address  string
	dir      string // folder of the probe
}

func dial(ctx context.Context, address string) (*client, error) {
	conn, err := rpc.Dial(address)
	if err != nil {
		return nil, err
	}
	return &client{ctx: ctx, conn: conn, address: address, master: rpc.NewMasterClient(conn, address)}, nil
}

// close closes the sessions and the connection.
func (c *client) close() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), 10*time.Second)
	defer cancel()
	for _, handle := range c.sessions {
		// a server that has ended cannot answer
		_, _ = c.master.CloseSession(ctx, &pb.CloseSessionRequest{SessionHandle: handle})
	}
	c.conn.Close()
}

// reset drops the variables and queues of the probes, which outlive their sessions. It also ends
// all sessions.
func reset(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.close()
	_, err = c.master.Reset(ctx, &pb.ResetRequest{Container: []string{"probe"}})
	return err
}

// create creates a session with a graph.
func (c *client) create(g *pb.GraphDef) (string, error) {
	resp, err := c.master.CreateSession(c.ctx, &pb.CreateSessionRequest{GraphDef: g})
	if err == nil {
		c.sessions = append(c.sessions, resp.GetSessionHandle())
	}
	return resp.GetSessionHandle(), err
}

// session creates a session with a graph in text form.
func (c *client) session(text string) (string, error) {
	def, err := parseGraph(text)
	if err != nil {
		return "", err
	}
	return c.create(def)
}

func parseGraph(text string) (*pb.GraphDef, error) {
	g, err := graphtext.Parse(kernel.Default, text)
	if err != nil {
		return nil, err
	}
	return pbconv.GraphToProto(g.Def())
}

// step runs nodes of a session.
func (c *client) step(handle string, options *pb.RunOptions, targets ...string) error {
	return outcome(c.master.RunStep(c.ctx, &message.RunStepRequest{Session: handle, Targets: targets, Options: options}))
}

// outcome returns the error of a step, and gives its tensors back.
func outcome(resp *message.RunStepResponse, err error) error {
	if err != nil {
		return err
	}
	defer resp.Release()
	if resp.Err != nil {
		return resp.Err
	}
	return nil
}

// once creates a session and runs the node y.
func (c *client) once(text string) error { return c.repeat(1, text) }

// repeat creates a session, and runs the node init if there is one, and then the node y several
// times.
func (c *client) repeat(n int, text string) error {
	handle, err := c.session(text)
	for i := 0; i < n && err == nil; i++ {
		err = c.step(handle, nil, "y")
	}
	return err
}

// neighbor trains until it is stopped.
type neighbor struct {
	client *client
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // set before ended is closed

	mu   sync.Mutex
	took []time.Duration // guarded by mu; times of steps since the last takeP99
	most time.Duration   // guarded by mu; since the last takeP99

	begin atomic.Int64 // when the current step began, ns since 1970
}

// training is the graph of the neighbor: a parameter update that multiplies matrices.
const training = `
shape = Const() value=int32[2]{64, 64}
w = VariableV2() dtype=float shape=[64,64] container="neighbor"
none = Const() value=float[]{0}
zero = Fill(shape, none)
init = Assign(w, zero)
x = RandomUniform(shape) dtype=float
p = MatMul(x, w)
d = Sub(x, p)
g = MatMul(x, d) transpose_a=true
rate = Const() value=float[]{0.001}
step = Mul(g, rate)
y = AssignAdd(w, step)
`

func startNeighbor(ctx context.Context, address string) (*neighbor, error) {
	ctx, cancel := context.WithCancel(ctx)
	n := &neighbor{cancel: cancel, ended: make(chan struct{})}
	var err error
	if n.client, err = dial(ctx, address); err != nil {
		cancel()
		return nil, err
	}
	handle, err := n.client.session(training)
	if err == nil {
		err = n.client.step(handle, nil, "init")
	}
	if err != nil {
		cancel()
		return nil, err
	}
	go n.train(handle)
	return n, nil
}

func (n *neighbor) train(handle string) {
	defer close(n.ended)
	for n.err == nil {
		begin := time.Now()
		n.begin.Store(begin.UnixNano())
		n.err = n.client.step(handle, nil, "y")
		took := time.Since(begin)
		n.mu.Lock()
		n.took = append(n.took, took)
		n.most = max(n.most, took)
		n.mu.Unlock()
	}
}

// takeP99 returns the 99th percentile of the times of the steps since its last call.
func (n *neighbor) takeP99() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.took) == 0 {
		return 0
	}
	slices.Sort(n.took)
	p99 := n.took[len(n.took)*99/100]
	n.most = n.took[len(n.took)-1]
	n.took = nil
	return p99
}

// longest returns the longest step before the last call of takeP99, or since.
func (n *neighbor) longest() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most
}

// stop ends the training and returns the error of a step that failed.
func (n *neighbor) stop() error {
	var err error
	select {
	case <-n.ended:
		err = n.err
		if err == nil {
			err = errors.New("it has ended")
		}
	default:
	}
	n.cancel()
	<-n.ended
	n.client.ctx = context.WithoutCancel(n.client.ctx)
	n.client.close()
	return err
}
