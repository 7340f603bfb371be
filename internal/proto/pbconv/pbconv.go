// Package pbconv converts between TensorFlow's messages (package pb) and the values of the runtime:
// tensors, shapes, attributes, operations, functions and graphs.
//
// Messages are untrusted input. Every conversion from a message validates it, returns errors that
// name the invalid part, and bounds its allocations. A small message can describe a large tensor
// only by the rule that the last value is repeated. The repeated elements are bounded per message.
// Element memory is shared with the message where possible, so a message must not be modified after
// its conversion.
package pbconv

import "github.com/weft-ml/weft/status"

const (
	// maxExpansion bounds the bytes of elements that are not in a message: the last value of a
	// short list is repeated for all missing elements. It is the maximum size of a message itself.
	maxExpansion = 1 << 31
	// maxDepth bounds the nesting of tensors, functions and their attributes.
	maxDepth = 100
)

// reader converts one message with all nested messages.
type reader struct {
	expansion int64 // remaining budget of repeated elements, bytes
	depth     int
}

func newReader() *reader { return &reader{expansion: maxExpansion} }

// enter increments the nesting depth. If it returns no error, leave must be called.
func (r *reader) enter() error {
	if r.depth >= maxDepth {
		return status.InvalidArgumentf("values are nested more than %d deep", maxDepth)
	}
	r.depth++
	return nil
}

func (r *reader) leave() { r.depth-- }

// expand charges elements that are not in the message to the budget.
func (r *reader) expand(elements int64, size int) error {
	if elements > r.expansion/int64(max(size, 1)) {
		return status.ResourceExhaustedf("%d repeated elements of %d bytes exceed the limit of one message", elements, size)
	}
	r.expansion -= elements * int64(size)
	return nil
}
