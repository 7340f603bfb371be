package collective

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/tensor"
)

const (
	// chunkAlignment is what the size of the pieces of a reduction is a multiple of, in bytes: that
	// of TensorFlow.
	chunkAlignment = 64
	// maxChunk is the size in bytes above which more rings make smaller pieces.
	maxChunk = 4 << 20
	// defaultRings is the most rings for each device of a task where an operation does not say.
	defaultRings = 2
)

// ring is one order of the devices, in which each sends to the next.
type ring struct {
	ranks []int // of the devices, in the order of the ring
	at    int   // position of this device
}

// next and before return positions in the ring.
func (r *ring) next(at, by int) int { return (at + by) % len(r.ranks) }

func (r *ring) before(at, by int) int { return (at + len(r.ranks) - by%len(r.ranks)) % len(r.ranks) }

// rings returns an order for each of the offsets: in every task, the devices from the offset on,
// backwards for a negative one.
func (x *execution) rings() []ring {
	offsets := x.op.Offsets
	if len(offsets) == 0 {
		offsets = x.offsets()
	}
	tasks := x.group.tasks()
	out := make([]ring, len(offsets))
	for i, offset := range offsets {
		first := 0
		for _, n := range tasks {
			for d := range n {
				at := (d + int(max(offset, -offset))) % n
				if offset < 0 {
					at = n - 1 - at
				}
				if first+at == x.rank {
					out[i].at = len(out[i].ranks)
				}
				out[i].ranks = append(out[i].ranks, first+at)
			}
			first += n
		}
	}
	return out
}

// offsets returns those of as many rings as make pieces of good size.
func (x *execution) offsets() []int64 {
	if x.op.MaxRings < 0 {
		return []int64{0}
	}
	size, perTask := len(x.group.Members), len(x.group.Members)/len(x.group.tasks())
	most := x.op.MaxRings
	if most == 0 {
		most = defaultRings
	}
	most *= perTask
	bytes := int(x.op.Shape.NumElements()) * x.op.DType.Size()
	n := 1
	for n < most && bytes/(size*n) > maxChunk {
		n++
	}
	stride := max(perTask/n, 1)
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(stride * i)
		if i%2 == 1 {
			out[i] = -out[i]
		}
	}
	return out
}

// field is a piece of the tensor on its way around a ring.
type field struct {
	*ring
	chunk  int // position in the ring of the device that sends it first
	index  int // of the piece
	lo, hi int // its elements
}

func (x *execution) fieldKey(pass int, f *field, from int) string {
	return fmt.Sprintf("%s:%d:%d:%d", x.key, pass, f.index, from)
}

// receiveField takes a piece from the device before.
func (x *execution) receiveField(ctx context.Context, pass int, f *field) (tensor.Tensor, error) {
	from := f.before(f.at, 1)
	return x.receive(ctx, f.ranks[from], x.fieldKey(pass, f, from), f.hi-f.lo)
}

// sendField lets the device after have a piece, of which the caller keeps its reference.
func (x *execution) sendField(ctx context.Context, pass int, f *field, t *tensor.Tensor) error {
	return x.send(ctx, x.fieldKey(pass, f, f.at), t.Retain())
}

// eachField calls run for all pieces of n elements at the same time, for each ring as many as there
// are devices, with at most size elements each.
func (x *execution) eachField(ctx context.Context, n, size int, rings []ring, run func(ctx context.Context, f *field) error) error {
	count := len(x.group.Members) * len(rings)
	return each(ctx, count, func(ctx context.Context, i int) error {
		f := &field{ring: &rings[i%len(rings)], chunk: i / len(rings), index: i, lo: min(i*size, n), hi: min((i+1)*size, n)}
		if f.lo == f.hi {
			return nil
		}
		return run(ctx, f)
	})
}

// alignedChunk returns how many elements each of count pieces has, except for the last ones.
func alignedChunk(elem, n, count int) int {
	size := (n + count - 1) / count
	if elem >= chunkAlignment {
		return size
	}
	return size + (chunkAlignment-size*elem%chunkAlignment)/elem
}

// flat returns a tensor as a vector, whose reference stays with it.
func flat(t *tensor.Tensor) (tensor.Tensor, error) {
	return t.WithShape(tensor.Shape{int64(t.NumElements())})
}

// reduce is an all-reduce in two passes. In the first, each piece goes once around its ring, and
// every device merges its own into it; in the second the result goes around.
func (x *execution) reduce(ctx context.Context) (tensor.Tensor, error) {
	in, err := flat(x.in)
	if err != nil {
		return tensor.Tensor{}, err
	}
	out, err := tensor.Alloc(x.op.DType, x.in.Shape())
	if err != nil {
		return tensor.Tensor{}, err
	}
	rings := x.rings()
	elem, n := x.op.DType.Size(), x.in.NumElements()
	size := alignedChunk(elem, n, len(x.group.Members)*len(rings))
	err = x.eachField(ctx, n, size, rings, func(ctx context.Context, f *field) error {
		own := in.Rows(f.lo, f.hi)
		t, err := x.accumulate(ctx, f, &own)
		if err != nil {
			return err
		}
		if f.at != f.before(f.chunk, 1) { // where the result is not yet
			t.Release()
			if t, err = x.receiveField(ctx, 1, f); err != nil {
				return err
			}
		}
		defer t.Release()
		copy(out.Bytes()[f.lo*elem:f.hi*elem], t.Bytes())
		if f.at != f.before(f.chunk, 2) {
			return x.sendField(ctx, 1, f, &t)
		}
		return nil
	})
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	return out, nil
}

// accumulate merges the device's own part of a piece with what the devices before have made of it,
// and passes the sum on. It returns the sum with a reference: on the last device of the ring, the
// result.
func (x *execution) accumulate(ctx context.Context, f *field, own *tensor.Tensor) (tensor.Tensor, error) {
	t := own.Retain()
	if f.at != f.chunk {
		got, err := x.receiveField(ctx, 0, f)
		if err != nil {
			t.Release()
			return tensor.Tensor{}, err
		}
		if t, err = x.merge(t, got); err != nil {
			return tensor.Tensor{}, err
		}
	}
	var err error
	switch {
	case f.at != f.before(f.chunk, 1):
		err = x.sendField(ctx, 0, f, &t)
	case x.op.Finish != nil && len(f.ranks) > 1:
		x.op.Finish(&t, len(f.ranks))
	}
	if err != nil {
		t.Release()
		return tensor.Tensor{}, err
	}
	return t, nil
}

// merge returns own op got, in elements that nobody else has, and takes both references. Merging is
// commutative, so that it can happen in what has been received.
func (x *execution) merge(own, got tensor.Tensor) (tensor.Tensor, error) {
	defer own.Release()
	if !got.Exclusive() {
		shared := got
		defer shared.Release()
		var err error
		if got, err = shared.Clone(); err != nil {
			return tensor.Tensor{}, err
		}
	}
	x.op.Merge(&got, &own)
	return got, nil
}

// gather makes a tensor of what all devices have, in the order of their ranks: each piece goes once
// around the ring.
func (x *execution) gather(ctx context.Context) (tensor.Tensor, error) {
	in, err := flat(x.in)
	if err != nil {
		return tensor.Tensor{}, err
	}
	out, err := tensor.Alloc(x.op.DType, x.op.Shape)
	if err != nil {
		return tensor.Tensor{}, err
	}
	x.op.Offsets = []int64{0}
	elem, size := x.op.DType.Size(), x.in.NumElements()
	err = x.eachField(ctx, out.NumElements(), size, x.rings(), func(ctx context.Context, f *field) error {
		t := in.Retain()
		if f.at != f.chunk {
			t.Release()
			var err error
			if t, err = x.receiveField(ctx, 0, f); err != nil {
				return err
			}
		}
		defer t.Release()
		copy(out.Bytes()[f.lo*elem:f.hi*elem], t.Bytes())
		if f.at != f.before(f.chunk, 1) {
			return x.sendField(ctx, 0, f, &t)
		}
		return nil
	})
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	return out, nil
}

// reduceScatter is the first pass of an all-reduce, in which the piece of each device ends with it.
func (x *execution) reduceScatter(ctx context.Context) (tensor.Tensor, error) {
	in, err := flat(x.in)
	if err != nil {
		return tensor.Tensor{}, err
	}
	x.op.Offsets = []int64{0}
	n, members := x.in.NumElements(), len(x.group.Members)
	var out tensor.Tensor
	err = x.eachField(ctx, n, n/members, x.rings(), func(ctx context.Context, f *field) error {
		own := in.Rows(f.lo, f.hi)
		f.chunk = f.next(f.chunk, 1) // what the device after it sends first comes to it last
		t, err := x.accumulate(ctx, f, &own)
		if err != nil || f.at != f.before(f.chunk, 1) {
			t.Release()
			return err
		}
		out = t
		return nil
	})
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	if !out.Initialized() {
		return tensor.Zeros(x.op.DType, x.op.Shape)
	}
	return out.WithShape(x.op.Shape)
}
