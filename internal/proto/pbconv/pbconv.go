// Package pbconv converts between TensorFlow's messages (package pb) and the values that the
// runtime works on: tensors, shapes, attributes, operations, functions and graphs.
//
// Messages come from outside. Every conversion from one checks what it reads, names what is wrong,
// and allocates no more than the message itself justifies: a small message can ask for a large
// tensor only through values that it repeats, and these are bounded for each message as a whole.
// Element memory is shared with the message where it can be, so a message must not be modified
// after it was converted.
package pbconv

import "github.com/weft-ml/weft/status"

const (
	// maxExpansion bounds the bytes of elements that one message may ask for without holding them,
	// by the rule that the last value of a short list stands for all missing ones. It is the size
	// that a message itself can have.
	maxExpansion = 1 << 31
	// maxDepth bounds how deep tensors, functions and their attributes may nest.
	maxDepth = 100
)

// reader converts one message with everything in it.
type reader struct {
	expansion int64 // bytes of repeated elements that may still be asked for
	depth     int
}

func newReader() *reader { return &reader{expansion: maxExpansion} }

// enter goes one level deeper; leave must follow where it returned no error.
func (r *reader) enter() error {
	if r.depth >= maxDepth {
		return status.InvalidArgumentf("values are nested more than %d deep", maxDepth)
	}
	r.depth++
	return nil
}

func (r *reader) leave() { r.depth-- }

// expand accounts for elements that the message does not hold.
func (r *reader) expand(elements int64, size int) error {
	if elements > r.expansion/int64(max(size, 1)) {
		return status.ResourceExhaustedf("%d repeated elements of %d bytes are more than one message may ask for", elements, size)
	}
	r.expansion -= elements * int64(size)
	return nil
}
