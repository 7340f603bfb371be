package queue

import (
	"container/heap"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/tensor"
)

// store keeps the elements of a queue in the order of its kind.
type store interface {
	len() int
	push(element)
	pop() element  // removes the next element; the store must not be empty
	unpop(element) // reinserts the last popped element that has not been reinserted
}

// headerMemory is about the memory in bytes of a component of an element, and slotMemory that of an
// element in its store, without the tensors.
const (
	headerMemory = 64
	slotMemory   = 96
)

// minHeld is the memory of elements in bytes below which it is not asked for.
const minHeld = 64 << 10

// held asks for the memory of the elements that a resource holds, without their tensors: elements
// may share one tensor. It asks when there is twice as much as before, so an element that takes the
// place of another costs a comparison.
type held struct{ asked int64 }

// mustAdd is called before an element of a number of components is added to n others. It panics
// with a [membudget.Exceeded] if there is no memory.
func (h *held) mustAdd(n, components int) {
	need := int64(n+1) * (slotMemory + int64(components)*headerMemory)
	switch {
	case need <= minHeld:
		h.asked = minHeld
	case need > h.asked:
		membudget.MustTake(need)
		h.asked = 2 * need
	case need < h.asked/8:
		h.asked /= 2
	}
}

// ring is a first-in, first-out store.
type ring struct {
	elems []element // circular buffer; its length is 0 or a power of two
	head  int       // position of the first element
	n     int
}

func newRing(spec) store { return &ring{} }

func (r *ring) len() int { return r.n }

// at returns the slot of the element i positions after the first.
func (r *ring) at(i int) *element { return &r.elems[(r.head+i)&(len(r.elems)-1)] }

func (r *ring) grow() {
	if r.n < len(r.elems) {
		return
	}
	//sizedmake:ok less than the tensors of the elements
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

// bag is a store in random order, which equals TensorFlow's for the same seeds.
type bag struct {
	elems   []element
	random  philox.Generator
	numbers [4]uint32 // random numbers of one generator output
	left    int       // count of unused numbers
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

// priorities is a store ordered by the first component, smallest first, and by arrival for equal
// components.
type priorities struct {
	heap  ranking
	count uint64 // number of elements pushed so far
}

func newPriorities(spec) store { return &priorities{} }

func (p *priorities) len() int { return len(p.heap) }

func (p *priorities) push(e element) {
	heap.Push(&p.heap, ranked{tensor.Value[int64](&e[0]), p.count, e})
	p.count++
}

func (p *priorities) pop() element { return heap.Pop(&p.heap).(ranked).element }

// unpop need not restore the order, because such queues dequeue a batch at once.
func (p *priorities) unpop(e element) { p.push(e) }

type ranked struct {
	priority int64
	number   uint64 // arrival order
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
