package server

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

const (
	pushers    = 64
	pushes     = 8         // mean number per client
	gradient   = 256 << 10 // elements
	pushWindow = 8 << 20   // bytes
	// bytes: the window, other allocations of requests, and those of connections
	pushAllowed = 24 << 20
)

// TestPushersShareAParameterServer makes many clients push gradients as fast as they can, over
// connections of their own. The memory for them stays within the window of the server, and every
// client is served.
func TestPushersShareAParameterServer(t *testing.T) {
	// on a machine that is busy with other things, senders would exceed the usual wait
	c, err := StartCluster(map[string]int{"ps": 1}, 1, withReceiveWindow(pushWindow, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Shutdown(t.Context()) //nolint:errcheck // no step runs

	m := newPushed()
	clients := make([]*pusher, pushers)
	for i := range clients {
		clients[i] = m.pusher(t, c.Target("ps", 0))
		if i == 0 {
			clients[0].run(t, m.init)
		}
		clients[i].push(t) // one-time allocations
	}
	runtime.GC()
	// otherwise the heap size depends on when garbage is collected
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before := heap()
	var left atomic.Int64
	left.Store(pushers * pushes)
	var wg sync.WaitGroup
	for _, p := range clients {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				p.push(t)
				p.served++
			}
		})
	}
	wg.Wait()
	if grown := heap() - before; grown > pushAllowed && !raceEnabled {
		t.Errorf("%d clients that push %d bytes each: the heap has grown by %d bytes, with a window of %d", pushers,
			4*gradient, grown, pushWindow)
	} else {
		t.Logf("the heap has grown by %d bytes", grown)
	}
	least, most := clients[0].served, clients[0].served
	for _, p := range clients {
		least, most = min(least, p.served), max(most, p.served)
	}
	// package rpc tests the order
	if t.Logf("served between %d and %d times", least, most); least == 0 {
		t.Errorf("some were served %d times, others never", most)
	}
}

// pushed is a variable with its updates.
type pushed struct {
	scope        *op.Scope
	delta        op.Output
	init, update op.Output
	value        tensor.Tensor
}

func newPushed() *pushed {
	s := op.NewScope()
	m := &pushed{scope: s.WithDevice("/job:ps/task:0")}
	v := op.VariableV2(m.scope, tensor.MakePartial(gradient), tensor.Float32, op.VariableV2SharedName("pushed"))
	m.delta = op.Placeholder(m.scope, tensor.Float32)
	m.init = op.Assign(m.scope, v, op.Fill(m.scope, op.Const(m.scope, []int32{gradient}), op.Const(m.scope, float32(0))))
	m.update = op.ApplyGradientDescent(m.scope, v, op.Const(m.scope, float32(1)), m.delta)
	m.value, _ = tensor.Zeros(tensor.Float32, tensor.Shape{gradient})
	return m
}

// pusher is a client.
type pusher struct {
	model   *pushed
	session *weft.Session
	served  int
}

func (m *pushed) pusher(t *testing.T, target string) *pusher {
	s, err := weft.NewSession(target, m.scope.Graph(), weft.WithNetwork(), weft.WithTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &pusher{model: m, session: s}
}

func (p *pusher) run(t *testing.T, target op.Output) {
	if _, err := p.session.Run(t.Context(), nil, nil, []*graph.Node{target.Node}); err != nil {
		t.Error(err)
	}
}

func (p *pusher) push(t *testing.T) {
	feeds := map[op.Output]tensor.Tensor{p.model.delta: p.model.value}
	if _, err := p.session.Run(t.Context(), feeds, nil, []*graph.Node{p.model.update.Node}); err != nil {
		t.Error(err)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
