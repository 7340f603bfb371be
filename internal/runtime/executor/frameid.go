package executor

// rootFrame is the ID of the frame outside of all loops.
const rootFrame = 0

// childFrame returns the ID of the instance of a frame that is entered from iteration iter of its
// parent. name is the hash (package murmur) of the frame's name. IDs are part of rendezvous keys,
// and all tasks that run parts of a loop must compute the same ones, so the formula is that of
// TensorFlow.
func childFrame(parent uint64, iter int64, name uint64) uint64 {
	return combine(parent, combine(uint64(iter), name))
}

func combine(a, b uint64) uint64 { return a ^ (b + 0x9e3779b97f4a7800 + a<<10 + a>>4) }
