package table

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/opkit/gatherscatter"
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/stepctx"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// dense is a hash table with open addressing. Keys and values are scalars or vectors. Hashes and
// quadratic probing equal TensorFlow's, and buckets are exported unchanged, so either runtime can
// load the other's checkpoints.
type dense[K key] struct {
	layout
	width          int       // elements per key
	empty, deleted marker[K] // marker keys of empty and deleted buckets
	maxLoad        float32   // maximum fraction of buckets in use

	// [number of buckets, width]; shared with exported tensors, so it is copied before it changes
	buckets tensor.Tensor
	values  column // one row for each bucket
	entries int
	text    *membudget.Holding // of keys
}

// marker is a reserved key that no entry may have.
type marker[K key] struct {
	name string
	key  []K
}

// newDenseOf returns a table with empty buckets.
func newDenseOf[K key](a *membudget.Account, l layout, empty, deleted *tensor.Tensor, maxLoad float32, buckets int) (contents, error) {
	d := &dense[K]{
		text: membudget.NewHolding(), layout: l, width: empty.NumElements(), maxLoad: maxLoad,
		empty:   marker[K]{"empty_key", membudget.AppendAll(nil, tensor.Values[K](empty)...)},
		deleted: marker[K]{"deleted_key", membudget.AppendAll(nil, tensor.Values[K](deleted)...)},
	}
	if slices.Equal(d.empty.key, d.deleted.key) {
		return nil, status.InvalidArgumentf("Empty and deleted keys cannot be equal")
	}
	return d, d.allocate(a, buckets)
}

// allocate replaces the buckets with n empty ones.
func (d *dense[K]) allocate(a *membudget.Account, n int) error {
	if n < 4 || n&(n-1) != 0 {
		return status.InvalidArgumentf("Number of buckets must be at least 4 and a power of 2, got: %d", n)
	}
	buckets, err := resource.Zeros(a, d.keyType, tensor.Shape{int64(n), int64(d.width)})
	if err != nil {
		return err
	}
	values, err := newColumn(a, d.valueType, n, d.valueShape.NumElements())
	if err != nil {
		buckets.Release()
		return err
	}
	all := tensor.Values[K](&buckets)
	for i := 0; i < len(all); i += d.width {
		copy(all[i:], d.empty.key)
	}
	d.buckets, d.values, d.entries = buckets, values, 0
	d.values.n = n
	return nil
}

func (d *dense[K]) size() int { return d.entries }

func (d *dense[K]) close() { d.text.End() }

// probe returns the bucket of a key and the first free bucket for it. Either is -1 if there is
// none. The error is that of the context of p if it ends.
func (d *dense[K]) probe(p *stepctx.Progress, buckets, key []K) (bucket, free int, err error) {
	size := 0
	if d.keyType == tensor.String {
		size = int(textIn(key))
	}
	if err := p.Pass(size); err != nil {
		return -1, -1, err
	}
	n := d.buckets.Dim(0)
	free = -1
	at := int(hash(key) & uint64(n-1))
	for probes := 1; probes <= n; probes++ {
		if err := p.Pass(0); err != nil {
			return -1, -1, err
		}
		have := buckets[at*d.width : (at+1)*d.width]
		switch {
		case same(have, key):
			return at, free, nil
		case same(have, d.empty.key):
			if free < 0 {
				free = at
			}
			return -1, free, nil
		case free < 0 && same(have, d.deleted.key):
			free = at
		}
		at = (at + probes) & (n - 1)
	}
	return -1, free, nil
}

// same is slices.Equal for keys of equal length. Most pairs differ in the first element.
func same[K key](x, y []K) bool {
	return x[0] == y[0] && (len(x) == 1 || slices.Equal(x[1:], y[1:]))
}

func (d *dense[K]) isMarker(key []K) bool {
	return same(key, d.empty.key) || same(key, d.deleted.key)
}

// read returns the elements and the number of keys in a key or a batch of keys. A marker among them
// is an error.
func (d *dense[K]) read(keys *tensor.Tensor) ([]K, int, error) {
	n := 1
	if keys.Rank() > 0 {
		n = keys.Dim(0)
	}
	if keys.NumElements() != n*d.width {
		want := append(tensor.Shape{int64(n)}, d.keyShape...)
		return nil, 0, status.InvalidArgumentf("Expected key shape %v got %v", want, keys.Shape())
	}
	elems := tensor.Values[K](keys)
	for i := 0; i < len(elems); i += d.width {
		for _, m := range []*marker[K]{&d.empty, &d.deleted} {
			if same(elems[i:i+d.width], m.key) {
				return nil, 0, status.InvalidArgumentf("Using the %s as a table key is not allowed", m.name)
			}
		}
	}
	return elems, n, nil
}

func (d *dense[K]) find(ctx context.Context, out, keys, defaults *tensor.Tensor) error {
	elems, n, err := d.read(keys)
	if err != nil {
		return err
	}
	l, err := gatherscatter.NewList(n)
	defer l.Release()
	if err != nil {
		return err
	}
	buckets := tensor.Values[K](&d.buckets)
	var ended atomic.Bool
	parallel.For(n, findGrain, func(lo, hi int) {
		at := progress(ctx)
		for i := lo; i < hi; i++ {
			bucket, _, err := d.probe(&at, buckets, elems[i*d.width:(i+1)*d.width])
			if err != nil {
				ended.Store(true)
				return
			}
			l.Rows[i] = int64(bucket)
		}
	})
	if ended.Load() {
		return ctx.Err()
	}
	d.values.get(out, defaults, l, false)
	return nil
}

func (d *dense[K]) insert(ctx context.Context, a *membudget.Account, keys, values *tensor.Tensor) error {
	elems, n, err := d.read(keys)
	if err != nil {
		return err
	}
	if err := d.grow(ctx, a, d.entries+n); err != nil {
		return err
	}
	text := textOf(keys)
	if err := resource.Hold(d.text, a, text); err != nil {
		return err
	}
	added, err := d.store(ctx, a, elems, values, n)
	d.text.Shrink(text - added)
	return err
}

// grow ensures capacity for n entries.
func (d *dense[K]) grow(ctx context.Context, a *membudget.Account, n int) error {
	room := d.buckets.Dim(0)
	for float32(n) > float32(room)*d.maxLoad && room > 0 {
		room *= 2
	}
	if room == d.buckets.Dim(0) {
		return nil
	}
	old := *d
	if err := d.allocate(a, room); err != nil {
		return err
	}
	_, err := d.store(ctx, a, tensor.Values[K](&old.buckets), &old.values.t, old.buckets.Dim(0))
	if err != nil { // the table is as before
		d.buckets.Release()
		d.values.t.Release()
		*d = old
		return err
	}
	old.buckets.Release()
	old.values.t.Release()
	return nil
}

// store inserts or updates n entries, and returns the number of bytes of the keys that are new. It
// skips marker keys. If the context ends, the entries before are stored.
func (d *dense[K]) store(ctx context.Context, a *membudget.Account, keys []K, values *tensor.Tensor, n int) (added int64, err error) {
	l, err := gatherscatter.NewList(n)
	defer l.Release()
	if err != nil {
		return 0, err
	}
	if err := d.values.own(a); err != nil {
		return 0, err
	}
	if err := d.ownBuckets(a); err != nil {
		return 0, err
	}
	buckets := tensor.Values[K](&d.buckets)
	at := progress(ctx)
	for i := range n {
		key := keys[i*d.width : (i+1)*d.width]
		l.Rows[i] = -1
		if d.isMarker(key) {
			continue
		}
		bucket, free, err := d.probe(&at, buckets, key)
		if err != nil {
			for k := range l.Rows[i:] {
				l.Rows[i+k] = -1
			}
			d.values.set(l, values)
			return added, err
		}
		if bucket < 0 {
			if free < 0 {
				return added, status.Internalf("Internal error in MutableDenseHashTable insert")
			}
			bucket = free
			copy(buckets[bucket*d.width:], key)
			d.entries++
			if d.keyType == tensor.String {
				added += textIn(key)
			}
		}
		l.Rows[i] = int64(bucket)
	}
	d.values.set(l, values)
	return added, nil
}

// ownBuckets copies the buckets if they are shared.
func (d *dense[K]) ownBuckets(a *membudget.Account) error {
	c := column{t: d.buckets, n: d.buckets.Dim(0)}
	err := c.own(a)
	d.buckets = c.t
	return err
}

func (d *dense[K]) remove(ctx context.Context, a *membudget.Account, keys *tensor.Tensor) error {
	elems, n, err := d.read(keys)
	if err != nil {
		return err
	}
	if err := d.ownBuckets(a); err != nil {
		return err
	}
	buckets := tensor.Values[K](&d.buckets)
	at := progress(ctx)
	for i := range n {
		bucket, _, err := d.probe(&at, buckets, elems[i*d.width:(i+1)*d.width])
		if err != nil {
			return err
		}
		if bucket >= 0 {
			copy(buckets[bucket*d.width:], d.deleted.key)
			d.entries--
			if d.keyType == tensor.String {
				d.text.Shrink(textIn(elems[i*d.width : (i+1)*d.width]))
			}
		}
	}
	return nil
}

// replace sets the buckets to those returned by export.
func (d *dense[K]) replace(_ context.Context, a *membudget.Account, keys, values *tensor.Tensor) error {
	if err := d.checkKeys(keys); err != nil {
		return err
	}
	if keys.Rank() != 2 || keys.Dim(0) == 0 || keys.Dim(1) != d.width {
		return status.InvalidArgumentf("Expected buckets of shape [?,%d] for key, got %v", d.width, keys.Shape())
	}
	if want := (tensor.Shape{int64(keys.Dim(0)), int64(d.values.width())}); !values.Shape().Equal(want) {
		return wrongValues(want, values)
	}
	all, entries, size := tensor.Values[K](keys), 0, int64(0)
	for i := 0; i < len(all); i += d.width {
		if key := all[i : i+d.width]; !d.isMarker(key) {
			entries++
			if d.keyType == tensor.String {
				size += textIn(key)
			}
		}
	}
	text := membudget.NewHolding()
	if err := resource.Hold(text, a, size); err != nil {
		return err
	}
	buckets, rows, err := sharePair(keys, values)
	if err != nil {
		text.End()
		return err
	}
	d.text.End()
	d.text = text
	d.buckets.Release()
	d.values.t.Release()
	d.buckets, d.values = buckets, column{t: rows, n: rows.Dim(0)}
	d.entries = entries
	return nil
}

func (d *dense[K]) export() (keys, values tensor.Tensor, err error) {
	return sharePair(&d.buckets, &d.values.t)
}

// sharePair calls share for two tensors.
func sharePair(x, y *tensor.Tensor) (a, b tensor.Tensor, err error) {
	if a, err = share(x); err != nil {
		return a, b, err
	}
	if b, err = share(y); err != nil {
		a.Release()
	}
	return a, b, err
}
