package executor

import "github.com/weft-ml/weft/kernel"

// frame is an instance of a frame in a run.
type frame struct {
	info    *frameInfo
	id      uint64
	name    string     // the name that id is the hash of, if the executor's FrameIDs are named
	parent  *iteration // iteration that it was entered from; nil for the root
	sibling *frame     // next child of the same parent, or next recycled frame

	oldest, newest *iteration // iterations that are not over, linked by next
	active         int        // number of iterations that are not over
	enters         int        // Enter nodes that have not delivered

	invariants []delivery // values of loop-invariant Enter nodes, for every iteration
	deferred   []delivery // values of NextIteration nodes for an iteration that may not start yet
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
	next     *iteration // following iteration, or next recycled one
	values   []kernel.Value
	counts   []count
	running  int    // nodes that are ready or in flight
	executed int    // nodes that are finished
	children *frame // frames that were entered from this iteration and are not over
}

func (it *iteration) inputs(n *node) []kernel.Value { return it.values[n.in : n.in+n.numIn] }

// newIteration returns an iteration in which no input has arrived.
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

// freeIteration recycles an iteration. It releases the values that no node has consumed. There are
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

// child returns the instance of a frame that is entered from an iteration of its parent. It creates
// the instance if there is none.
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
	f.setID(r.p.e.ids, from.frame, from.num)
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
	// The last Enter may end a frame in which no node waits for its value.
	if f.enters == 0 {
		r.retire(f)
	}
}

// leaveFrame delivers the output of an Exit node. A dead output is delivered to the parent frame
// only if the Exit is dead in the last iteration, because an Exit is dead in every other iteration.
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

// deliver propagates a copy of a value to an iteration.
func (r *run) deliver(d *delivery, it *iteration) {
	out := [1]kernel.Value{{Tensor: d.value.Tensor.Retain(), Ref: d.value.Ref}}
	r.propagate(d.node, it, d.dead, out[:])
	out[0].Release()
}

// nextIteration delivers the output of a NextIteration node. If the limit of parallel iterations is
// reached, it stores the value until the next iteration may start.
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

// beginIteration starts an iteration and delivers the deferred and the loop-invariant values to it.
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

// retire frees the iterations of a frame that are over, oldest first. If the frame is over too, it
// ends the frame and continues with the frame around it.
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

// endFrame ends a frame without iterations, delivers its dead Exit nodes, and returns the frame
// around it.
func (r *run) endFrame(f *frame) *frame {
	parent := f.parent
	for _, n := range f.deadExits {
		r.propagate(n, parent, true, nil)
	}
	r.freeFrame(f)
	return parent.frame
}

// freeFrame removes a frame without iterations from its parent and recycles it.
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

// dropIterations releases the state of a frame and of all frames within it.
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
