package pbconv

import (
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// A tensor of strings that share their text, or a list that holds one tensor many times, takes
// little memory, and its encoding much. So the memory of encodings is asked for first.

// errNoMemory is the error for a value for whose encoding there is no memory.
var errNoMemory = status.ResourceExhaustedf("There is not enough memory to encode the value (--memory-limit).")

// bytesHeader is the size of the header of a byte slice.
const bytesHeader = 24

// Marshal returns the deterministic encoding of a message, whose memory it asks for.
func Marshal(m proto.Message) ([]byte, error) { return marshal(m, 1) }

// MarshalText is Marshal for a result that is a string.
func MarshalText(m proto.Message) (string, error) {
	b, err := marshal(m, 2)
	return string(b), err
}

// marshal is Marshal that asks for the memory of several copies.
func marshal(m proto.Message, copies int) ([]byte, error) {
	if !membudget.Take(int64(copies * proto.Size(m))) {
		return nil, errNoMemory
	}
	return proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.Marshal(m)
}

// minText is the size of a text, in bytes, from which its memory is asked for. Smaller ones are
// part of the memory of a node.
const minText = 256

// takeTexts asks for the memory of copies of strings.
func takeTexts(all []string) error {
	n := int64(bytesHeader * len(all))
	for _, s := range all {
		n += int64(len(s))
	}
	if !membudget.Take(n) {
		return errNoMemory
	}
	return nil
}
