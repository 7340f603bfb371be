package kernel

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/status"
)

// Key identifies a tensor that crosses devices. It is the same in every step, is created once per
// Send or Recv node, and is immutable.
type Key struct {
	SendDevice      string // canonical name
	SendIncarnation uint64 // Incarnation of the sending device
	RecvDevice      string // canonical name
	Name            string // name of the tensor

	prefix string // all of the text before the frame
	root   string // the whole text outside of loops
}

// NewKey returns the key with the given parts.
func NewKey(sendDevice string, sendIncarnation uint64, recvDevice, name string) *Key {
	k := &Key{SendDevice: sendDevice, SendIncarnation: sendIncarnation, RecvDevice: recvDevice, Name: name}
	k.prefix = fmt.Sprintf("%s;%016x;%s;%s;", sendDevice, sendIncarnation, recvDevice, name)
	k.root = k.prefix + "0:0"
	return k
}

// At returns the text of the key for one execution of its node, in the form of the wire: send
// device, incarnation in 16 hexadecimal digits, receive device, name and "frame:iteration",
// separated by semicolons.
func (k *Key) At(at FrameIter) string {
	if at == (FrameIter{}) {
		return k.root
	}
	return k.prefix + strconv.FormatUint(at.Frame, 10) + ":" + strconv.FormatInt(at.Iter, 10)
}

// Prefix returns the text of the key before the frame, which is the same in all executions of its
// node.
func (k *Key) Prefix() string { return k.prefix }

// ParseKey parses the text of a key. Like TensorFlow, it ignores the frame.
func ParseKey(text string) (*Key, error) {
	parts := strings.Split(text, ";")
	if len(parts) != 5 || parts[3] == "" || parts[4] == "" {
		return nil, badKey(text)
	}
	incarnation, err := strconv.ParseUint(parts[1], 16, 64)
	if err != nil {
		return nil, badKey(text)
	}
	for _, d := range []string{parts[0], parts[2]} {
		if _, err := device.Parse(d); err != nil {
			return nil, badKey(text)
		}
	}
	return NewKey(parts[0], incarnation, parts[2], parts[3]), nil
}

func badKey(text string) error {
	return status.InvalidArgumentf("Invalid  rendezvous key: %s", text)
}
