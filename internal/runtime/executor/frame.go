package executor

import "github.com/weft-ml/weft/kernel"

// frame is an instance of a frame in a run.
type frame struct {
	info    *frameInfo
	id      uint64
	parent  *iteration // that it was entered from; nil for the root
	sibling *frame     // next child of the same parent, or next in the free list

	oldest, newest *iteration // those that are not over, linked by next
	active         int        // their number
	enters         int        // Enter nodes that have not delivered

	invariants []delivery // values of constant Enter nodes, for every iteration
	deferred   []delivery // values of NextIteration nodes for an iteration that may not begin yet
	deadExits  []*node    // Exit nodes that were dead in the newest iteration
}

// delivery is an output of a node on its way to another iteration.
type delivery struct {
	node  *node
	value kernel.Value
	dead  bool
}

// iteration is the state of one iteration of a frame: the inputs of its nodes that have arrived.
type iteration struct {
	frame    *frame
	num      int64
	next     *iteration // the following one, or next in the free list
	values   []kernel.Value
	counts   []count
	running  int    // nodes that are ready or under way
	executed int    // nodes that are done
	children *frame // that were entered from it and are not over
}

func (it *iteration) inputs(n *node) []kernel.Value { return it.values[n.in : n.in+n.numIn] }

// newIteration returns an iteration in which nothing has arrived.
func (r *run) newIteration(f *frame, num int64) *iteration {
	it := r.iters[f.info.index]
	if it == nil {
		it = &iteration{values: make([]kernel.Value, f.info.slots), counts: make([]count, len(f.info.initial))}
	} else {
		r.iters[f.info.index] = it.next
	}
	copy(it.counts, f.info.initial)
	it.frame, it.num, it.next, it.running, it.executed = f, num, nil, 0, 0
	return it
}

// freeIteration recycles an iteration and releases the values in it that nobody took: there are
// some only if a node was not executed.
func (r *run) freeIteration(it *iteration) {
	if it.executed != len(it.counts) {
		for i := range it.values {
			it.values[i].Release()
		}
	}
	index := it.frame.info.index
	it.frame = nil
	it.next = r.iters[index]
	r.iters[index] = it
}

// child returns the instance of a frame that values enter from an iteration of its parent.
func (r *run) child(from *iteration, info *frameInfo) *frame {
	for f := from.children; f != nil; f = f.sibling {
		if f.info == info {
			return f
		}
	}
	f := r.frames
	if f == nil {
		f = new(frame)
	} else {
		r.frames = f.sibling
	}
	f.info, f.parent, f.enters = info, from, info.enters
	f.id = childFrame(from.frame.id, from.num, info.hash)
	f.sibling = from.children
	from.children = f
	it := r.newIteration(f, 0)
	f.oldest, f.newest, f.active = it, it, 1
	return f
}

// enterFrame delivers the output of an Enter node.
func (r *run) enterFrame(n *node, from *iteration, dead bool, out []kernel.Value) {
	f := r.child(from, r.p.frames[n.child])
	f.enters--
	if n.invariant {
		d := delivery{node: n, dead: dead}
		if !dead {
			d.value, out[0] = out[0], kernel.Value{}
		}
		f.invariants = append(f.invariants, d)
		for it := f.oldest; it != nil; it = it.next {
			r.deliver(&d, it)
		}
	} else {
		r.propagate(n, f.oldest, dead, out)
	}
	// A frame may be over with its last value, if nothing in it waits for that.
	if f.enters == 0 {
		r.retire(f)
	}
}

// leaveFrame delivers the output of an Exit node. Loops make dead ones in every iteration but the
// last; only if the last one of the frame is dead as well, its parent hears of it.
func (r *run) leaveFrame(n *node, it *iteration, dead bool, out []kernel.Value) {
	f := it.frame
	if !dead {
		r.propagate(n, f.parent, false, out)
		return
	}
	if it == f.newest {
		f.deadExits = append(f.deadExits, n)
	}
}

// deliver gives a copy of a value to an iteration.
func (r *run) deliver(d *delivery, it *iteration) {
	out := [1]kernel.Value{{Tensor: d.value.Tensor.Retain(), Ref: d.value.Ref}}
	r.propagate(d.node, it, d.dead, out[:])
	out[0].Release()
}

// nextIteration delivers the output of a NextIteration node, or keeps it until another iteration
// may begin.
func (r *run) nextIteration(n *node, it *iteration, out []kernel.Value) {
	f := it.frame
	if it.next == nil {
		if f.active >= f.info.parallel {
			f.deferred = append(f.deferred, delivery{node: n, value: out[0]})
			out[0] = kernel.Value{}
			return
		}
		r.beginIteration(f)
	}
	r.propagate(n, it.next, false, out)
}

// beginIteration adds an iteration, with the values that wait for it.
func (r *run) beginIteration(f *frame) {
	it := r.newIteration(f, f.newest.num+1)
	if f.active == 0 {
		f.oldest = it
	} else {
		f.newest.next = it
	}
	f.newest = it
	f.active++
	clear(f.deadExits)
	f.deadExits = f.deadExits[:0]
	for i := range f.deferred {
		d := &f.deferred[i]
		r.deliver(d, it)
		d.value.Release()
	}
	clear(f.deferred)
	f.deferred = f.deferred[:0]
	for i := range f.invariants {
		r.deliver(&f.invariants[i], it)
	}
}

// retire ends the iterations of a frame that are over, oldest first, then the frame if it is over,
// and so on for those around it.
func (r *run) retire(f *frame) {
	for !f.info.root {
		for it := f.oldest; it != nil && it.running == 0 && it.children == nil && (it.num > 0 || f.enters == 0); it = f.oldest {
			f.active--
			f.oldest = it.next
			if len(f.deferred) > 0 {
				r.beginIteration(f)
			}
			r.freeIteration(it)
		}
		if f.oldest != nil || f.enters > 0 {
			return
		}
		f = r.endFrame(f)
	}
}

// endFrame ends a frame whose iterations are over and returns the one around it.
func (r *run) endFrame(f *frame) *frame {
	parent := f.parent
	for _, n := range f.deadExits {
		r.propagate(n, parent, true, nil)
	}
	r.freeFrame(f)
	return parent.frame
}

// freeFrame takes a frame without iterations out of its parent and recycles it.
func (r *run) freeFrame(f *frame) {
	for link := &f.parent.children; *link != nil; link = &(*link).sibling {
		if *link == f {
			*link = f.sibling
			break
		}
	}
	for _, list := range [][]delivery{f.invariants, f.deferred} {
		for i := range list {
			list[i].value.Release()
			list[i].node = nil
		}
	}
	clear(f.deadExits)
	f.invariants, f.deferred, f.deadExits = f.invariants[:0], f.deferred[:0], f.deadExits[:0]
	f.parent, f.oldest, f.newest, f.active = nil, nil, nil, 0
	f.sibling = r.frames
	r.frames = f
}

// dropIterations releases all state of a frame and of the frames within it.
func (r *run) dropIterations(f *frame) {
	for it := f.oldest; it != nil; {
		for it.children != nil {
			child := it.children
			r.dropIterations(child)
			r.freeFrame(child)
		}
		following := it.next
		r.freeIteration(it)
		it = following
	}
	f.oldest, f.newest = nil, nil
}
