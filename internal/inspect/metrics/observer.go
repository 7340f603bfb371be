package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/status"
)

// maxPeers bounds the names of callers in labels. Further ones are counted as "other".
const maxPeers = 256

// An Observer counts what a task does. It implements [observe.Observer].
type Observer struct {
	registry *Registry
	running  *series
	executed *series

	mu      sync.Mutex
	peers   map[string]bool       // guarded by mu
	devices map[string]*deviceUse // by name; guarded by mu
}

// deviceUse is the use of a device.
type deviceUse struct {
	parts int
	since time.Time     // when parts has become 1
	busy  time.Duration // until since
}

// NewObserver returns an observer that counts in a registry.
func NewObserver(r *Registry) *Observer {
	o := &Observer{registry: r, running: r.series(stepsRunning), executed: r.series(nodes), peers: map[string]bool{}, devices: map[string]*deviceUse{}}
	r.series(stepTime)
	r.series(stepsDone, status.OK.String())
	return o
}

// known returns the name of a peer, or "other" if there are too many.
func (o *Observer) known(peer string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.peers[peer] && len(o.peers) >= maxPeers {
		return "other"
	}
	o.peers[peer] = true
	return peer
}

// StepBegan implements [observe.Observer].
func (o *Observer) StepBegan() { o.running.add(1) }

// StepEnded implements [observe.Observer].
func (o *Observer) StepEnded(code uint32, took time.Duration) {
	o.running.add(-1)
	o.registry.series(stepsDone, codeName(code)).add(1)
	o.registry.series(stepTime).observe(took)
}

// PartBegan implements [observe.Observer].
func (o *Observer) PartBegan(device string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.devices[device]
	if u == nil {
		u = &deviceUse{}
		o.devices[device] = u
	}
	if u.parts++; u.parts == 1 {
		u.since = time.Now()
	}
}

// PartEnded implements [observe.Observer].
func (o *Observer) PartEnded(device string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.devices[device]
	if u.parts--; u.parts == 0 {
		u.busy += time.Since(u.since)
	}
}

// NodesExecuted implements [observe.Observer].
func (o *Observer) NodesExecuted(n int) { o.executed.add(float64(n)) }

// CheckpointEnded implements [observe.Observer].
func (o *Observer) CheckpointEnded(operation string, code uint32, bytes int64, took time.Duration) {
	o.registry.series(checkpoints, operation, codeName(code)).add(1)
	o.registry.series(checkpointTime, operation).observe(took)
	o.registry.series(checkpointBytes, operation).add(float64(bytes))
}

// collect copies the use of devices to the registry.
func (o *Observer) collect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, u := range o.devices {
		busy := u.busy
		if u.parts > 0 {
			busy += time.Since(u.since)
		}
		name = shortDevice(name)
		o.registry.series(partsRunning, name).set(float64(u.parts))
		o.registry.series(deviceBusy, name).set(busy.Seconds())
	}
}

// shortDevice returns "CPU:0" for "/job:ps/replica:0/task:0/device:CPU:0".
func shortDevice(name string) string {
	if _, short, ok := strings.Cut(name, "/device:"); ok {
		return short
	}
	return name
}

func codeName(code uint32) string { return status.Code(code).String() }

// Calls counts the calls of a server, or those to other servers. It implements
// [grpch2.CallObserver].
type Calls struct {
	observer                                     *Observer
	calls, took, received, sent, inFlight, refus string // names of metrics
}

// Served returns the observer of the calls that the task serves.
func (o *Observer) Served() *Calls {
	return &Calls{o, serverCalls, serverTime, serverReceived, serverSent, serverInFlight, serverRefused}
}

// Made returns the observer of the calls that the task makes.
func (o *Observer) Made() *Calls {
	return &Calls{o, clientCalls, clientTime, clientReceived, clientSent, clientInFlight, ""}
}

// CallBegan implements [grpch2.CallObserver].
func (c *Calls) CallBegan(method, _ string) {
	c.observer.registry.series(c.inFlight, short(method)).add(1)
}

// CallEnded implements [grpch2.CallObserver].
func (c *Calls) CallEnded(method, peer string, code uint32, received, sent int64, took time.Duration) {
	r, method, peer := c.observer.registry, short(method), c.observer.known(peer)
	r.series(c.inFlight, method).add(-1)
	r.series(c.calls, method, peer, codeName(code)).add(1)
	r.series(c.took, method).observe(took)
	r.series(c.received, method, peer).add(float64(received))
	r.series(c.sent, method, peer).add(float64(sent))
}

// CallRefused implements [grpch2.CallObserver].
func (c *Calls) CallRefused(method, peer string, code uint32) {
	if c.refus != "" {
		c.observer.registry.series(c.refus, short(method), c.observer.known(peer), codeName(code)).add(1)
	}
}

// short returns "MasterService/RunStep" for "/tensorflow.MasterService/RunStep".
func short(path string) string {
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 {
		return path
	}
	return path[strings.LastIndexByte(path[:slash], '.')+1:]
}
