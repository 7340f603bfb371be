package executor

// rootFrame is the id of the frame outside of loops.
const rootFrame = 0

// childFrame returns the id of the instance of a frame that is entered from one iteration of its
// parent; name is the hash (package murmur) of the frame's name. Ids are part of rendezvous keys:
// all tasks that run parts of one loop must find the same ones, so the formula is TensorFlow's.
func childFrame(parent uint64, iter int64, name uint64) uint64 {
	return combine(parent, combine(uint64(iter), name))
}

func combine(a, b uint64) uint64 { return a ^ (b + 0x9e3779b97f4a7800 + a<<10 + a>>4) }
