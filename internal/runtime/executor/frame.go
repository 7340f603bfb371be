package executor

import (
	"slices"
	"unsafe"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// frame is an instance of a frame in a run.
type frame struct {
	info   *frameInfo
	id     uint64
	name   string     // the name that id is the hash of, if the executor's FrameIDs are named
	parent *iteration // iteration that it was entered from; nil for the root
	next   *frame     // next recycled frame

	oldest, newest *iteration // iterations that are not over, linked by next
	active         int        // number of iterations that are not over
	enters         int        // Enter nodes that have not delivered

	invariants []delivery // values of loop-invariant Enter nodes, for every iteration
	deferred   []delivery // values of NextIteration nodes for an iteration that may not start yet
	deadExits  []*node    // Exit nodes that were dead in the newest iteration
	left       []bool     // Exit nodes that have delivered a live value; empty if there is none
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
	running  int      // nodes that are ready or in flight
	executed int      // nodes that are finished
	children []*frame // by place; frames that were entered from this iteration and are not over
	open     int      // number of children that are not nil
}

func (it *iteration) inputs(n *node) []kernel.Value { return it.values[n.in : n.in+n.numIn] }

// memory returns about the memory of an iteration in bytes, with that of the nodes that are ready
// in it and of the values that are on their way from it.
func (info *frameInfo) memory() int {
	const perNode = unsafe.Sizeof(count{}) + unsafe.Sizeof(activation{})
	return int(unsafe.Sizeof(iteration{})) + len(info.initial)*int(perNode) +
		info.slots*int(unsafe.Sizeof(kernel.Value{})) + info.nested*int(unsafe.Sizeof((*frame)(nil)))
}

// newIteration returns an iteration in which no input has arrived. The number of iterations that
// run at the same time is chosen by the client, so memory is asked for. If there is none, the run
// fails, and newIteration returns nil.
func (r *run) newIteration(f *frame, num int64) *iteration {
	it := r.iters[f.info.index]
	if it == nil {
		if !r.meter.Take(f.info.memory()) {
			r.fail(f.info.noMemory())
			return nil
		}
		it = &iteration{
			values: make([]kernel.Value, f.info.slots), counts: make([]count, len(f.info.initial)),
			children: make([]*frame, f.info.nested),
		}
	} else {
		r.iters[f.info.index] = it.next
	}
	copy(it.counts, f.info.initial)
	it.frame, it.num, it.next, it.running, it.executed = f, num, nil, 0, 0
	return it
}

// noMemory returns the error of a run that has no memory for another iteration.
func (info *frameInfo) noMemory() *status.Error {
	if info.root {
		return status.ResourceExhaustedf("There is not enough memory to run a graph of %d nodes (--memory-limit).", len(info.initial))
	}
	return status.ResourceExhaustedf("There is not enough memory for another iteration of the loop %.64s (--memory-limit).", info.name)
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
// the instance if there is none. If there is no memory for it, the run fails, and child returns
// nil.
func (r *run) child(from *iteration, info *frameInfo) *frame {
	if f := from.children[info.place]; f != nil {
		return f
	}
	f := r.frames
	if f == nil {
		f = new(frame)
	} else {
		r.frames = f.next
	}
	f.info = info
	it := r.newIteration(f, 0)
	if it == nil {
		return nil
	}
	f.setID(r.p.e.ids, from.frame, from.num)
	if !r.meter.Take(len(f.name)) {
		r.fail(info.noMemory())
		return nil
	}
	f.parent, f.next, f.enters = from, nil, info.enters
	from.children[info.place] = f
	from.open++
	f.oldest, f.newest, f.active = it, it, 1
	return f
}

// enterFrame delivers the output of an Enter node.
func (r *run) enterFrame(n *node, from *iteration, dead bool, out []kernel.Value) {
	f := r.child(from, r.p.frames[n.child])
	if f == nil {
		return
	}
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
//
// An Exit that is not behind the Switch of a loop is live in several iterations. Only its first
// value leaves: the nodes in the parent frame count their inputs, and may be using the first one.
func (r *run) leaveFrame(n *node, it *iteration, dead bool, out []kernel.Value) {
	f := it.frame
	if !dead {
		if f.leave(n) {
			r.propagate(n, f.parent, false, out)
		}
		return
	}
	if it == f.newest {
		f.deadExits = append(f.deadExits, n)
	}
}

// leave records that an Exit node delivers a live value. It returns false if it has before.
func (f *frame) leave(n *node) bool {
	if len(f.left) == 0 {
		f.left = slices.Grow(f.left, f.info.exits)[:f.info.exits]
	}
	first := !f.left[n.exit]
	f.left[n.exit] = true
	return first
}

// hasLeft reports whether an Exit node has delivered a live value.
func (f *frame) hasLeft(n *node) bool { return len(f.left) > 0 && f.left[n.exit] }

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
		if !r.beginIteration(f) {
			return
		}
	}
	r.propagate(n, it.next, false, out)
}

// beginIteration starts an iteration and delivers the deferred and the loop-invariant values to it.
// If there is no memory for it, the run fails, and beginIteration returns false.
func (r *run) beginIteration(f *frame) bool {
	it := r.newIteration(f, f.newest.num+1)
	if it == nil {
		return false
	}
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
	return true
}

// retire frees the iterations of a frame that are over, oldest first. If the frame is over too, it
// ends the frame and continues with the frame around it.
func (r *run) retire(f *frame) {
	for !f.info.root {
		for it := f.oldest; it != nil && it.running == 0 && it.open == 0 && (it.num > 0 || f.enters == 0); it = f.oldest {
			f.active--
			f.oldest = it.next
			r.freeIteration(it) // before the next begins, which may use its memory
			if len(f.deferred) > 0 && !r.beginIteration(f) {
				return
			}
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
		if !f.hasLeft(n) {
			r.propagate(n, parent, true, nil)
		}
	}
	r.freeFrame(f)
	return parent.frame
}

// freeFrame removes a frame without iterations from its parent and recycles it.
func (r *run) freeFrame(f *frame) {
	f.parent.children[f.info.place] = nil
	f.parent.open--
	for _, list := range [][]delivery{f.invariants, f.deferred} {
		for i := range list {
			list[i].value.Release()
			list[i].node = nil
		}
	}
	clear(f.deadExits)
	clear(f.left)
	f.invariants, f.deferred, f.deadExits, f.left = f.invariants[:0], f.deferred[:0], f.deadExits[:0], f.left[:0]
	f.name, f.parent, f.oldest, f.newest, f.active = "", nil, nil, nil, 0
	f.next = r.frames
	r.frames = f
}

// dropIterations releases the state of a frame and of all frames within it.
func (r *run) dropIterations(f *frame) {
	for it := f.oldest; it != nil; {
		if it.open > 0 {
			for _, child := range it.children {
				if child != nil {
					r.dropIterations(child)
					r.freeFrame(child)
				}
			}
		}
		following := it.next
		r.freeIteration(it)
		it = following
	}
	f.oldest, f.newest = nil, nil
}
