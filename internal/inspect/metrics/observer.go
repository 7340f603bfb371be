package metrics

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/sys/mono"
	"github.com/weft-ml/weft/status"
)

// maxPeers bounds the names of callers in labels. Further ones are counted as "other".
const maxPeers = 256

// An Observer counts what a task does. It implements [observe.Observer]. What happens in every step
// and call finds its series without a lock and without allocation.
type Observer struct {
	registry *Registry
	running  *series
	executed *series
	took     *series // time of steps
	done     codes   // steps that have ended
	devices  copied[string, *deviceUse]

	mu    sync.Mutex
	peers map[string]bool // guarded by mu
}

// deviceUse is the use of a device.
type deviceUse struct {
	mu    sync.Mutex
	parts int   // guarded by mu
	since int64 // time when parts has become 1, by mono.Nanos; guarded by mu
	busy  int64 // until since, in ns; guarded by mu
}

// NewObserver returns an observer that counts in a registry.
func NewObserver(r *Registry) *Observer {
	o := &Observer{registry: r, running: r.series(stepsRunning), executed: r.series(nodes), took: r.series(stepTime), peers: map[string]bool{}}
	o.done.of(uint32(status.OK), o.stepsDone)
	return o
}

func (o *Observer) stepsDone(code string) *series { return o.registry.series(stepsDone, code) }

// codes are the series of a metric by canonical code.
type codes [status.Unauthenticated + 1]atomic.Pointer[series]

// of returns the series of a code, which find finds at the first time.
func (c *codes) of(code uint32, find func(code string) *series) *series {
	if code >= uint32(len(c)) {
		return find(codeName(code))
	}
	s := c[code].Load()
	if s == nil {
		s = find(codeName(code)) // the same for all goroutines
		c[code].Store(s)
	}
	return s
}

// copied is a map for few keys, which are found without a lock. It is copied for each new key.
type copied[K comparable, V any] struct {
	all atomic.Pointer[map[K]V] // not modified; nil if it is empty
	mu  sync.Mutex              // held while a key is added
}

// get returns the value of a key, which add makes at the first time.
func (c *copied[K, V]) get(key K, add func() V) V {
	if all := c.all.Load(); all != nil {
		if v, ok := (*all)[key]; ok {
			return v
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[K]V{}
	if old := c.all.Load(); old != nil {
		if v, ok := (*old)[key]; ok {
			return v
		}
		all = maps.Clone(*old)
	}
	all[key] = add()
	c.all.Store(&all)
	return all[key]
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
	o.done.of(code, o.stepsDone).add(1)
	o.took.observe(took)
}

func newDeviceUse() *deviceUse { return &deviceUse{} }

// PartBegan implements [observe.Observer].
func (o *Observer) PartBegan(device string) {
	u := o.devices.get(device, newDeviceUse)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.parts++; u.parts == 1 {
		u.since = mono.Nanos()
	}
}

// PartEnded implements [observe.Observer].
func (o *Observer) PartEnded(device string) {
	u := o.devices.get(device, newDeviceUse)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.parts--; u.parts == 0 {
		u.busy += mono.Nanos() - u.since
	}
}

// use returns the number of parts that run, and the time in which one ran.
func (u *deviceUse) use() (parts int, busy time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	busy = time.Duration(u.busy)
	if u.parts > 0 {
		busy += time.Duration(mono.Nanos() - u.since)
	}
	return u.parts, busy
}

// NodesExecuted implements [observe.Observer].
func (o *Observer) NodesExecuted(n int) { o.executed.add(int64(n)) }

// CheckpointEnded implements [observe.Observer].
func (o *Observer) CheckpointEnded(operation string, code uint32, bytes int64, took time.Duration) {
	o.registry.series(checkpoints, operation, codeName(code)).add(1)
	o.registry.series(checkpointTime, operation).observe(took)
	o.registry.series(checkpointBytes, operation).add(bytes)
}

// collect copies the use of devices to the registry.
func (o *Observer) collect() {
	all := o.devices.all.Load()
	if all == nil {
		return
	}
	for name, u := range *all {
		parts, busy := u.use()
		name = shortDevice(name)
		o.registry.series(partsRunning, name).set(float64(parts))
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
	series                                       copied[callKey, *callSeries]
}

// callKey names calls that are counted together. Callers choose neither part freely: methods are
// those of the services, and names of peers are addresses or in certificates.
type callKey struct{ method, peer string }

// callSeries are the series of calls of a method from or to a peer.
type callSeries struct {
	inFlight, took, received, sent *series
	done                           codes
	counted                        func(code string) *series // finds those of done
}

// maxCallSeries bounds the calls whose series are found fast.
const maxCallSeries = 4 * maxPeers

// Served returns the observer of the calls that the task serves.
func (o *Observer) Served() *Calls {
	return &Calls{observer: o, calls: serverCalls, took: serverTime, received: serverReceived, sent: serverSent, inFlight: serverInFlight, refus: serverRefused}
}

// Made returns the observer of the calls that the task makes.
func (o *Observer) Made() *Calls {
	return &Calls{observer: o, calls: clientCalls, took: clientTime, received: clientReceived, sent: clientSent, inFlight: clientInFlight}
}

// of returns the series of calls.
func (c *Calls) of(method, peer string) *callSeries {
	if all := c.series.all.Load(); all != nil {
		if s, ok := (*all)[callKey{method, peer}]; ok {
			return s
		}
		if len(*all) >= maxCallSeries {
			return c.find(method, peer)
		}
	}
	return c.series.get(callKey{strings.Clone(method), strings.Clone(peer)}, func() *callSeries { return c.find(method, peer) })
}

func (c *Calls) find(method, peer string) *callSeries {
	r, method, peer := c.observer.registry, strings.Clone(short(method)), strings.Clone(c.observer.known(peer))
	return &callSeries{
		inFlight: r.series(c.inFlight, method), took: r.series(c.took, method), received: r.series(c.received, method, peer),
		sent: r.series(c.sent, method, peer), counted: func(code string) *series { return r.series(c.calls, method, peer, code) },
	}
}

// CallBegan implements [grpch2.CallObserver].
func (c *Calls) CallBegan(method, peer string) { c.of(method, peer).inFlight.add(1) }

// CallEnded implements [grpch2.CallObserver].
func (c *Calls) CallEnded(method, peer string, code uint32, received, sent int64, took time.Duration) {
	s := c.of(method, peer)
	s.inFlight.add(-1)
	s.done.of(code, s.counted).add(1)
	s.took.observe(took)
	s.received.add(received)
	s.sent.add(sent)
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
