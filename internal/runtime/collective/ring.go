package collective

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

const (
	// chunkAlignment is the alignment of the pieces of a reduction in bytes. It is TensorFlow's.
	chunkAlignment = 64
	// maxChunk is the size of a piece in bytes above which another ring is added.
	maxChunk = 4 << 20
	// defaultRings is the maximum number of rings per device of a task if the operation does not
	// set one.
	defaultRings = 2
)

// ring is an order of the devices. Each device sends to the next.
type ring struct {
	ranks []int // of the devices, in the order of the ring
	at    int   // position of this device
}

// next and before return the position that follows or precedes a position by a distance.
func (r *ring) next(at, by int) int { return (at + by) % len(r.ranks) }

func (r *ring) before(at, by int) int { return (at + len(r.ranks) - by%len(r.ranks)) % len(r.ranks) }

// pieceMemory is about the memory of a piece of a tensor in bytes: its goroutine, its key, and its
// place in a ring.
const pieceMemory = 4 << 10

// rings returns one order per offset. In every task, the order starts at the device with that
// offset. It is reversed for a negative offset.
//
// A client chooses the number of offsets, so rings asks for the memory of all pieces.
func (x *execution) rings() ([]ring, error) {
	offsets := x.op.Offsets
	if len(offsets) == 0 {
		offsets = x.offsets()
	}
	if !membudget.Take(int64(len(offsets)) * int64(len(x.group.Members)) * pieceMemory) {
		return nil, status.ResourceExhaustedf("There is not enough memory for %d rings of %d devices (--memory-limit).",
			len(offsets), len(x.group.Members))
	}
	tasks := x.group.tasks()
	out := make([]ring, len(offsets))
	for i, offset := range offsets {
		first := 0
		for _, n := range tasks {
			for d := range n {
				at := (d + distance(offset, n)) % n
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
	return out, nil
}

// distance returns the absolute value of an offset modulo n.
func distance(offset int64, n int) int {
	by := uint64(offset)
	if offset < 0 {
		by = -by
	}
	return int(by % uint64(n))
}

// offsets returns the offsets of as many rings as are needed for pieces of at most maxChunk bytes.
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

// piece is a part of the tensor that travels around a ring.
type piece struct {
	*ring
	chunk  int // position in the ring of the device that sends it first
	index  int // index of the piece, part of its keys
	lo, hi int // range of its elements
}

func (x *execution) pieceKey(pass int, f *piece, from int) string {
	return fmt.Sprintf("%s:%d:%d:%d", x.key, pass, f.index, from)
}

// receivePiece receives a piece from the previous device.
func (x *execution) receivePiece(ctx context.Context, pass int, f *piece) (tensor.Tensor, error) {
	from := f.before(f.at, 1)
	return x.receive(ctx, f.ranks[from], x.pieceKey(pass, f, from), f.hi-f.lo)
}

// sendPiece sends a piece to the next device. The caller keeps its reference.
func (x *execution) sendPiece(ctx context.Context, pass int, f *piece, t *tensor.Tensor) error {
	return x.send(ctx, x.pieceKey(pass, f, f.at), t.Retain())
}

// eachPiece calls run concurrently for all pieces of n elements. Each ring has as many pieces as
// there are devices, with at most size elements each.
func (x *execution) eachPiece(ctx context.Context, n, size int, rings []ring, run func(ctx context.Context, f *piece) error) error {
	count := len(x.group.Members) * len(rings)
	return each(ctx, count, func(ctx context.Context, i int) error {
		f := &piece{ring: &rings[i%len(rings)], chunk: i / len(rings), index: i, lo: min(i*size, n), hi: min((i+1)*size, n)}
		if f.lo == f.hi {
			return nil
		}
		return run(ctx, f)
	})
}

// alignedChunk returns the number of elements of each of count pieces. The last pieces may be
// smaller.
func alignedChunk(elem, n, count int) int {
	size := (n + count - 1) / count
	if elem >= chunkAlignment {
		return size
	}
	return size + (chunkAlignment-size*elem%chunkAlignment)/elem
}

// flat returns a tensor as a vector that shares the reference of t.
func flat(t *tensor.Tensor) (tensor.Tensor, error) {
	return t.WithShape(tensor.Shape{int64(t.NumElements())})
}

// reduce is an all-reduce in two passes. In the first pass each piece goes once around its ring,
// and every device merges its own part into it. In the second pass the result goes around.
func (x *execution) reduce(ctx context.Context) (tensor.Tensor, error) {
	in, err := flat(x.in)
	if err != nil {
		return tensor.Tensor{}, err
	}
	out, err := tensor.Alloc(x.op.DType, x.in.Shape())
	if err != nil {
		return tensor.Tensor{}, err
	}
	rings, err := x.rings()
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	elem, n := x.op.DType.Size(), x.in.NumElements()
	size := alignedChunk(elem, n, len(x.group.Members)*len(rings))
	err = x.eachPiece(ctx, n, size, rings, func(ctx context.Context, f *piece) error {
		own := in.Rows(f.lo, f.hi)
		t, err := x.accumulate(ctx, f, &own)
		if err != nil {
			return err
		}
		if f.at != f.before(f.chunk, 1) { // the result is on another device
			t.Release()
			if t, err = x.receivePiece(ctx, 1, f); err != nil {
				return err
			}
		}
		defer t.Release()
		copy(out.Bytes()[f.lo*elem:f.hi*elem], t.Bytes())
		if f.at != f.before(f.chunk, 2) {
			return x.sendPiece(ctx, 1, f, &t)
		}
		return nil
	})
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	return out, nil
}

// accumulate merges the device's own part of a piece with the sum of the devices before it and
// sends the sum on. It returns the sum with a reference. On the last device of the ring the sum is
// the result.
func (x *execution) accumulate(ctx context.Context, f *piece, own *tensor.Tensor) (tensor.Tensor, error) {
	t := own.Retain()
	if f.at != f.chunk {
		got, err := x.receivePiece(ctx, 0, f)
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
		err = x.sendPiece(ctx, 0, f, &t)
	case x.op.Finish != nil && len(f.ranks) > 1:
		x.op.Finish(&t, len(f.ranks))
	}
	if err != nil {
		t.Release()
		return tensor.Tensor{}, err
	}
	return t, nil
}

// merge merges two tensors and takes over both references. Merging is commutative, so the result is
// written to the elements of got if no other tensor shares them.
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

// gather concatenates the tensors of all devices in the order of their ranks. Each piece goes once
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
	rings, err := x.rings()
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	elem, size := x.op.DType.Size(), x.in.NumElements()
	err = x.eachPiece(ctx, out.NumElements(), size, rings, func(ctx context.Context, f *piece) error {
		t := in.Retain()
		if f.at != f.chunk {
			t.Release()
			var err error
			if t, err = x.receivePiece(ctx, 0, f); err != nil {
				return err
			}
		}
		defer t.Release()
		copy(out.Bytes()[f.lo*elem:f.hi*elem], t.Bytes())
		if f.at != f.before(f.chunk, 1) {
			return x.sendPiece(ctx, 0, f, &t)
		}
		return nil
	})
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	return out, nil
}

// reduceScatter is the first pass of an all-reduce. The piece of each device ends at that device.
func (x *execution) reduceScatter(ctx context.Context) (tensor.Tensor, error) {
	in, err := flat(x.in)
	if err != nil {
		return tensor.Tensor{}, err
	}
	x.op.Offsets = []int64{0}
	rings, err := x.rings()
	if err != nil {
		return tensor.Tensor{}, err
	}
	n, members := x.in.NumElements(), len(x.group.Members)
	var out tensor.Tensor
	err = x.eachPiece(ctx, n, n/members, rings, func(ctx context.Context, f *piece) error {
		own := in.Rows(f.lo, f.hi)
		f.chunk = f.next(f.chunk, 1) // the piece that the next device sends first arrives here last
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
