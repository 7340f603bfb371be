package queue

import (
	"container/heap"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/tensor"
)

// store keeps the elements of a queue in the order of its kind.
type store interface {
	len() int
	push(element)
	pop() element  // the next of at least one
	unpop(element) // puts back what pop gave last, of what is not back yet
}

// ring is a store that gives first what came first.
type ring struct {
	elems []element // a circular buffer; its length is 0 or a power of two
	head  int       // position of the first
	n     int
}

func newRing(spec) store { return &ring{} }

func (r *ring) len() int { return r.n }

// at returns the place of the element that is i behind the first.
func (r *ring) at(i int) *element { return &r.elems[(r.head+i)&(len(r.elems)-1)] }

func (r *ring) grow() {
	if r.n < len(r.elems) {
		return
	}
	bigger := make([]element, max(4, 2*len(r.elems)))
	for i := range r.n {
		bigger[i] = *r.at(i)
	}
	r.elems, r.head = bigger, 0
}

func (r *ring) push(e element) {
	r.grow()
	*r.at(r.n) = e
	r.n++
}

func (r *ring) pop() element {
	first := r.at(0)
	e := *first
	*first = nil
	r.head = (r.head + 1) & (len(r.elems) - 1)
	r.n--
	return e
}

func (r *ring) unpop(e element) {
	r.grow()
	r.head = (r.head - 1) & (len(r.elems) - 1)
	r.n++
	*r.at(0) = e
}

// bag is a store that gives elements in random order, the same as TensorFlow for the same seeds.
type bag struct {
	elems   []element
	random  philox.Generator
	numbers [4]uint32 // of one output
	left    int       // of numbers, not used yet
}

func newBag(s spec) store {
	seed, seed2 := uint64(s.seed), uint64(s.seed2)
	if seed == 0 && seed2 == 0 {
		seed, seed2 = rand.Uint64(), rand.Uint64()
	}
	return &bag{random: philox.New(seed, seed2)}
}

func (b *bag) len() int { return len(b.elems) }

func (b *bag) push(e element) { b.elems = append(b.elems, e) }

func (b *bag) pop() element {
	if b.left == 0 {
		b.numbers, b.left = b.random.Next(), 4
	}
	i := int(b.numbers[4-b.left] % uint32(len(b.elems)))
	b.left--
	e, last := b.elems[i], len(b.elems)-1
	b.elems[i] = b.elems[last]
	b.elems[last] = nil
	b.elems = b.elems[:last]
	return e
}

func (b *bag) unpop(e element) { b.push(e) }

// priorities is a store that gives the element with the smallest first component, and of those the
// one that came first.
type priorities struct {
	heap  ranking
	count uint64 // elements that came so far
}

func newPriorities(spec) store { return &priorities{} }

func (p *priorities) len() int { return len(p.heap) }

func (p *priorities) push(e element) {
	heap.Push(&p.heap, ranked{tensor.Value[int64](&e[0]), p.count, e})
	p.count++
}

func (p *priorities) pop() element { return heap.Pop(&p.heap).(ranked).element }

// unpop is never needed for more than order's sake: such queues give the elements of a batch at
// once.
func (p *priorities) unpop(e element) { p.push(e) }

type ranked struct {
	priority int64
	number   uint64 // in the order of arrival
	element
}

type ranking []ranked

func (r ranking) Len() int { return len(r) }

func (r ranking) Less(i, j int) bool {
	if r[i].priority != r[j].priority {
		return r[i].priority < r[j].priority
	}
	return r[i].number < r[j].number
}

func (r ranking) Swap(i, j int) { r[i], r[j] = r[j], r[i] }

func (r *ranking) Push(x any) { *r = append(*r, x.(ranked)) }

func (r *ranking) Pop() any {
	last := len(*r) - 1
	x := (*r)[last]
	(*r)[last] = ranked{}
	*r = (*r)[:last]
	return x
}
