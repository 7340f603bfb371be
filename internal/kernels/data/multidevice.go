package data

import (
	"context"
	"errors"
	"sync"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "MultiDeviceIterator", Doc: "Creates an iterator resource whose elements are distributed to several devices in turn.",
		Out: []string{"handle: resource"}, Attrs: withSpec("devices: list(string) >= 1", "shared_name: string", "container: string"),
		Stateful: true, Shape: opdef.ScalarShape,
	}, makeMultiDevice)
	for name, out := range map[string][]string{
		"AnonymousMultiDeviceIterator": {"handle: resource", "deleter: variant"}, "AnonymousMultiDeviceIteratorV3": {"handle: resource"},
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Creates an anonymous iterator resource whose elements are distributed to several devices in turn.",
			Out: out, Attrs: withSpec("devices: list(string) >= 1"), Stateful: true, Shape: opdef.ScalarShape,
		}, newAnonymous(func(n *node, _ *kernel.Context) (kernel.Resource, error) {
			return newMultiDevice(n.Construction), nil
		}))
	}
	kernel.RegisterNew(opdef.Def{
		Name: "MultiDeviceIteratorInit",
		Doc: "Initializes a multi-device iterator with a dataset. At most max_buffer_size elements are buffered for each device. " +
			"Returns the incarnation, which MultiDeviceIteratorGetNextFromShard must pass.",
		In:  []string{"dataset: variant", "multi_device_iterator: resource", "max_buffer_size: int64"},
		Out: []string{"incarnation_id: int64"}, Stateful: true, Shape: opdef.ScalarShape,
	}, initMultiDevice)
	kernel.RegisterNew(opdef.Def{
		Name: "MultiDeviceIteratorGetNextFromShard", Doc: "Returns the next element for the device at index shard_num. It blocks until the element is available.",
		In:  []string{"multi_device_iterator: resource", "shard_num: int32", "incarnation_id: int64"},
		Out: []string{"components: output_types"}, Attrs: withSpec(), Stateful: true, Shape: elementShape,
	}, nextFromShard)
	kernel.RegisterFunc(opdef.Def{
		Name: "MultiDeviceIteratorToStringHandle", Doc: "Returns a string handle for a multi-device iterator.",
		In: []string{"multi_device_iterator: resource"}, Out: []string{"string_handle: string"}, Stateful: true, Shape: opdef.ScalarShape,
	}, toStringHandle[*MultiDeviceIterator])
	kernel.RegisterNew(opdef.Def{
		Name: "MultiDeviceIteratorFromStringHandle", Doc: "Returns the multi-device iterator of a string handle from MultiDeviceIteratorToStringHandle.",
		In: []string{"string_handle: string"}, Out: []string{"multi_device_iterator: resource"},
		Attrs:    []string{"output_types: list(type) >= 0 = []", "output_shapes: list(shape) >= 0 = []"},
		Stateful: true, Shape: opdef.ScalarShape,
	}, newFromStringHandle[*MultiDeviceIterator])
	kernel.RegisterFunc(opdef.Def{
		Name: "DeleteMultiDeviceIterator", Doc: "Deletes a multi-device iterator.",
		In:    []string{"multi_device_iterator: resource", "iterators: N * resource", "deleter: variant"},
		Attrs: []string{"N: int >= 0"}, Stateful: true,
	}, deleteResource)
}

// MultiDeviceIterator is the resource of an iterator for several devices. The first element is for
// the first device, the second for the second and so on, independent of the order of requests.
type MultiDeviceIterator struct {
	spec
	devices int

	mu          sync.Mutex
	closed      bool              // guarded by mu
	incarnation int64             // number of initializations; guarded by mu
	at          *shardedIteration // guarded by mu; nil before the first MultiDeviceIteratorInit
}

func newMultiDevice(c *kernel.Construction) *MultiDeviceIterator {
	return &MultiDeviceIterator{
		spec: spec{c.Attrs.Types("output_types"), c.Attrs.Shapes("output_shapes")}, devices: len(c.Attrs.Strings("devices")),
	}
}

// TypeName returns TensorFlow's name of the resource.
func (*MultiDeviceIterator) TypeName() string {
	return "N10tensorflow4data12_GLOBAL__N_119MultiDeviceIteratorE"
}

// Close stops the goroutine that reads ahead.
func (m *MultiDeviceIterator) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.at.stop()
}

func makeMultiDevice(c *kernel.Construction) (kernel.Kernel, error) {
	want := newMultiDevice(c)
	return resource.Maker[*MultiDeviceIterator]{
		Create: func(*kernel.Context, string) (*MultiDeviceIterator, error) { return newMultiDevice(c), nil },
		Verify: func(m *MultiDeviceIterator) error { return want.check(&m.spec) },
		ByNode: true,
	}.Kernel(c)
}

func initMultiDevice(c *kernel.Construction) (kernel.Kernel, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		go func() { done(guarded(func() error { return n.initMultiDevice(ctx) })) }()
	}), nil
}

func (n *node) initMultiDevice(ctx *kernel.Context) error {
	maxBuffered, err := scalar[int64](n, ctx, "max_buffer_size")
	if err != nil {
		return err
	}
	d, err := datasetOf(ctx.Input(0))
	if err != nil {
		return err
	}
	m, err := resource.Find[*MultiDeviceIterator](ctx, 1)
	if err != nil {
		return err
	}
	if err := m.check(d.elementSpec()); err != nil {
		return err
	}
	id, err := m.begin(ctx, d, maxBuffered)
	if err == nil {
		ctx.SetOutput(0, tensor.Scalar(id))
	}
	return err
}

// begin starts an iteration over a dataset and returns the new incarnation. maxBuffered is the
// number of elements buffered for each shard.
func (m *MultiDeviceIterator) begin(ctx *kernel.Context, d dataset, maxBuffered int64) (int64, error) {
	lifetime, cancel := context.WithCancel(context.Background())
	at := &shardedIteration{
		lifetime: lifetime, cancel: cancel, cleanups: &cleanups{}, maxBuffered: maxBuffered,
		unordered: allowsAnyOrder(options(d)),
		shards:    membudget.Make[shardQueue](m.devices), changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	var err error
	if at.from, err = open(at.request(ctx), d); err != nil {
		cancel()
		at.cleanups.run()
		return 0, err
	}
	m.mu.Lock()
	previous := m.at
	m.incarnation++
	at.id, m.at = m.incarnation, at
	if m.closed {
		cancel()
	}
	m.mu.Unlock()
	previous.stop()
	return at.id, nil
}

func nextFromShard(c *kernel.Construction) (kernel.Kernel, error) {
	n, err := newNode(c)
	if err != nil {
		return nil, err
	}
	return kernel.AsyncFunc(func(ctx *kernel.Context, done func(error)) {
		m, err := resource.Find[*MultiDeviceIterator](ctx, 0)
		if err != nil {
			done(err)
			return
		}
		shard, err := scalar[int32](n, ctx, "shard_num")
		if err != nil {
			done(err)
			return
		}
		id, err := scalar[int64](n, ctx, "incarnation_id")
		if err != nil {
			done(err)
			return
		}
		go func() { done(guarded(func() error { return n.nextFromShard(ctx, m, int(shard), id) })) }()
	}), nil
}

func (n *node) nextFromShard(ctx *kernel.Context, m *MultiDeviceIterator, shard int, id int64) error {
	m.mu.Lock()
	at := m.at
	m.mu.Unlock()
	switch {
	case at == nil:
		return status.FailedPreconditionf("GetNextFromShard() failed because the iterator has not been initialized.")
	case at.id != id:
		return status.InvalidArgumentf("Invalid incarnation id. Provided: %d; Expected: %d", id, at.id)
	case shard < 0 || shard >= len(at.shards):
		return status.InvalidArgumentf("shard_num must be between 0 and %d, is %d", len(at.shards)-1, shard)
	}
	e, err := at.next(at.request(ctx), shard)
	if err != nil {
		return endOfSequence(err)
	}
	if err := checkTypes(n.Outputs, specOf(e).types); err != nil {
		e.release()
		return err
	}
	for i := range e {
		ctx.SetOutput(i, e[i])
	}
	return nil
}

// shardedIteration is one iteration over a dataset whose elements are distributed to shards in
// turn. A goroutine reads the elements, from the first request until the dataset or the iteration
// ends. It waits while the buffer of the current shard is full.
type shardedIteration struct {
	id          int64
	lifetime    context.Context
	cancel      context.CancelFunc
	cleanups    *cleanups
	from        iterator
	maxBuffered int64 // maximum number of buffered elements per shard

	unordered bool // options of the dataset have deterministic = false

	changed chan struct{} // holds a token if a buffer may have room
	ended   chan struct{} // closed when the reader goroutine has ended

	mu        sync.Mutex
	started   bool         // guarded by mu
	exhausted bool         // the dataset is exhausted; guarded by mu
	shards    []shardQueue // guarded by mu
}

// shardQueue holds the buffered elements of a shard, or its waiting requests.
type shardQueue struct {
	elements []*result
	requests []*result
}

// request returns a request of a node within the iteration.
func (d *shardedIteration) request(ctx *kernel.Context) *run {
	r := newRun(ctx, d.lifetime, d.cleanups)
	r.unordered = d.unordered
	return r
}

// stop ends the iteration. Waiting requests fail.
func (d *shardedIteration) stop() {
	if d == nil {
		return
	}
	d.cancel()
	d.mu.Lock()
	if !d.started {
		d.started = true
		close(d.ended)
	}
	d.mu.Unlock()
	<-d.ended
	d.cleanups.run()
}

// next returns the next element of a shard.
func (d *shardedIteration) next(r *run, shard int) (element, error) {
	d.mu.Lock()
	if d.lifetime.Err() != nil {
		d.mu.Unlock()
		return nil, status.Cancelledf("Cancelled Multidevice iterator")
	}
	if !d.started {
		d.started = true
		go d.deal(r.ahead())
	}
	q := &d.shards[shard]
	if len(q.elements) > 0 {
		p := q.elements[0]
		q.elements = q.elements[1:]
		d.mu.Unlock()
		d.wake()
		return p.value, p.err
	}
	if d.exhausted {
		d.mu.Unlock()
		return nil, errEnd
	}
	p := newResult()
	q.requests = append(q.requests, p)
	d.mu.Unlock()
	d.wake()
	select {
	case <-p.ended:
	case <-r.ctx.Context().Done():
		if d.withdraw(shard, p) {
			return nil, r.cancelled()
		}
		<-p.ended
	}
	return p.value, p.err
}

// withdraw removes a waiting request. It returns false if the request was already answered.
func (d *shardedIteration) withdraw(shard int, p *result) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := &d.shards[shard]
	for i, other := range q.requests {
		if other == p {
			//sizedmake:ok the list becomes shorter
			q.requests = append(q.requests[:i:i], q.requests[i+1:]...)
			return true
		}
	}
	return false
}

func (d *shardedIteration) wake() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func (d *shardedIteration) deal(r *run) {
	defer close(d.ended)
	defer d.finish()
	for shard := 0; d.room(shard); shard = (shard + 1) % len(d.shards) {
		e, err := nextGuarded(d.from, r)
		d.deliver(shard, e, err)
		if errors.Is(err, errEnd) {
			return
		}
	}
}

// room waits until the buffer of a shard has room. It returns false if the iteration ends first.
func (d *shardedIteration) room(shard int) bool {
	for {
		d.mu.Lock()
		q := &d.shards[shard]
		ok := int64(len(q.elements)) < d.maxBuffered || len(q.requests) > 0
		d.mu.Unlock()
		if d.lifetime.Err() != nil {
			return false
		}
		if ok {
			return true
		}
		select {
		case <-d.changed:
		case <-d.lifetime.Done():
			return false
		}
	}
}

// deliver passes an element to the first waiting request of a shard, or buffers it.
func (d *shardedIteration) deliver(shard int, e element, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.exhausted = errors.Is(err, errEnd)
	q := &d.shards[shard]
	if len(q.requests) == 0 {
		q.elements = append(q.elements, ready(e, err))
		return
	}
	q.requests[0].set(e, err)
	q.requests = q.requests[1:]
}

// finish fails the waiting requests, because no more elements will follow.
func (d *shardedIteration) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := errEnd
	if !d.exhausted {
		err = status.Cancelledf("Cancelled and buffer not filled.")
	}
	for i := range d.shards {
		for _, p := range d.shards[i].requests {
			p.set(nil, err)
		}
		d.shards[i].requests = nil
	}
}
