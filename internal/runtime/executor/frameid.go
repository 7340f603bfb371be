package executor

import (
	"strconv"

	"github.com/weft-ml/weft/internal/numeric/murmur"
)

// rootFrame is the ID of the frame outside of all loops.
const rootFrame = 0

// FrameIDs selects how the IDs of frames are computed. IDs are part of rendezvous keys, so all
// tasks that run parts of a loop must compute the same ones. The formulas are those of TensorFlow.
type FrameIDs uint8

const (
	// CombinedFrameIDs combine the ID of the parent frame, its iteration and the hash of the name.
	CombinedFrameIDs FrameIDs = iota
	// NamedFrameIDs are hashes of names that list all frames and iterations around a frame:
	// ";0;outer;3;inner" is the frame "inner" in iteration 3 of "outer". Releases of TensorFlow
	// before 2.3 use them.
	NamedFrameIDs
)

// setID sets the ID of the instance of a frame that is entered from iteration iter of its parent. A
// name is as long as those of all frames around it together.
func (f *frame) setID(ids FrameIDs, parent *frame, iter int64) {
	if ids == CombinedFrameIDs {
		f.id = childFrame(parent.id, iter, f.info.hash)
		return
	}
	f.name = parent.name + ";" + strconv.FormatInt(iter, 10) + ";" + f.info.name
	f.id = murmur.Sum64(f.name)
}

// childFrame returns the combined ID of the instance of a frame that is entered from iteration iter
// of its parent. name is the hash (package murmur) of the frame's name.
func childFrame(parent uint64, iter int64, name uint64) uint64 {
	return combine(parent, combine(uint64(iter), name))
}

func combine(a, b uint64) uint64 { return a ^ (b + 0x9e3779b97f4a7800 + a<<10 + a>>4) }
