package rpc

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// inlineContent is the size, in bytes, up to which elements are copied next to the other fields, as
// in TensorFlow.
const inlineContent = 1024

// A writer encodes a protocol message into several buffers. The elements of large tensors share the
// tensors' memory; the buffers between them are the writer's own. It does nothing after the first
// error.
type writer struct {
	out  encoded
	tail []byte // bytes after the buffers in out
	head []byte // scratch memory for the head of a tensor
	err  error
}

func newWriter() *writer { return &writer{tail: make([]byte, 0, 256), head: make([]byte, 0, 64)} }

// finish returns the message.
func (w *writer) finish() (encoded, error) {
	w.flush()
	if excess := newReader(w.out.data).left - math.MaxInt32; excess > 0 && w.err == nil {
		w.err = status.Internalf("Cannot encode a Tensor that exceeds the 2GB protobuf limit. Exceeded bytes: %d", excess)
	}
	if w.err != nil {
		w.out.Free()
		return encoded{}, w.err
	}
	return w.out, nil
}

func (w *writer) flush() {
	if len(w.tail) > 0 {
		w.out.data = append(w.out.data, slices.Clip(w.tail))
		w.tail = w.tail[len(w.tail):]
	}
}

func (w *writer) key(field, wireType int) {
	w.tail = binary.AppendUvarint(w.tail, uint64(field<<3|wireType))
}

func (w *writer) uvarint(v uint64) { w.tail = binary.AppendUvarint(w.tail, v) }

// integer writes a number, unless it is zero, the default of the field.
func (w *writer) integer(field int, v int64) {
	if v != 0 {
		w.key(field, varint)
		w.uvarint(uint64(v))
	}
}

func (w *writer) bool(field int, v bool) {
	if v {
		w.key(field, varint)
		w.uvarint(1)
	}
}

// text writes a string unless it is empty.
func (w *writer) text(field int, s string) {
	if s != "" {
		w.element(field, s)
	}
}

// element writes a string of a repeated field.
func (w *writer) element(field int, s string) {
	w.key(field, lengthDelimited)
	w.uvarint(uint64(len(s)))
	w.tail = append(w.tail, s...)
}

func (w *writer) elements(field int, list []string) {
	for _, s := range list {
		w.element(field, s)
	}
}

// message writes a message without tensors.
func (w *writer) message(field int, m proto.Message) {
	out, err := appendMessage(w.tail, field, m)
	if err != nil {
		w.fail(err)
		return
	}
	w.tail = out
}

func appendMessage(b []byte, field int, m proto.Message) ([]byte, error) {
	b = binary.AppendUvarint(b, uint64(field<<3|lengthDelimited))
	b = binary.AppendUvarint(b, uint64(proto.Size(m)))
	return proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m)
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// bodyError writes an error into the two error fields of a response body.
func (w *writer) bodyError(codeField, textField int, err *status.Error) {
	if err != nil {
		w.integer(codeField, int64(err.Code))
		w.text(textField, strings.ToValidUTF8(err.Message, "\uFFFD"))
	}
}

// encodedTensor is a TensorProto in two parts.
type encodedTensor struct {
	head    []byte // all fields before the elements, and the key and length of the elements
	content []byte
	shared  *tensor.Tensor // tensor that owns content; nil if content is private
}

func (e *encodedTensor) size() int { return len(e.head) + len(e.content) }

// encode returns a TensorProto with the bytes that TensorFlow sends in RecvTensor. Plain elements
// are encoded by hand, and their content is present even if it is empty. Strings, handles and
// variants are encoded as TensorFlow's protocol library does.
func (w *writer) encode(t *tensor.Tensor) encodedTensor {
	var e encodedTensor
	if !t.Initialized() {
		w.fail(status.Internalf("a tensor without a value cannot be sent"))
		return e
	}
	e.head = append(w.head[:0], 1<<3|varint)
	e.head = binary.AppendUvarint(e.head, uint64(t.DType()))
	if t.DType().Size() > 0 {
		e.content, e.shared = t.Bytes(), t
		e.head = appendShape(e.head, t.Shape())
		e.head = append(e.head, 4<<3|lengthDelimited)
		e.head = binary.AppendUvarint(e.head, uint64(len(e.content)))
		return e
	}
	if t.DType() == tensor.String && !w.takeText(tensor.Values[string](t)) {
		w.fail(errNoAnswer)
		return e
	}
	var err error
	if e.content, err = pbconv.EncodeElements(t); err != nil {
		w.fail(err)
	}
	if e.head, err = appendMessage(e.head, 2, pbconv.ShapeToProto(t.Shape())); err != nil {
		w.fail(err)
	}
	if len(e.content) > 0 {
		e.head = append(e.head, 4<<3|lengthDelimited)
		e.head = binary.AppendUvarint(e.head, uint64(len(e.content)))
	}
	return e
}

// takeText asks for the memory of encoded strings, which are encoded once and copied once.
func (*writer) takeText(all []string) bool {
	n := int64(0)
	for _, s := range all {
		n += int64(len(s)) + 10
	}
	return n < minCounted || membudget.Take(2*n)
}

// appendShape appends a shape. A scalar has none, and a size of 0 is written.
func appendShape(b []byte, shape tensor.Shape) []byte {
	if len(shape) == 0 {
		return b
	}
	size := 0
	for _, d := range shape {
		size += 3 + uvarintSize(uint64(d))
	}
	b = append(b, 2<<3|lengthDelimited)
	b = binary.AppendUvarint(b, uint64(size))
	for _, d := range shape {
		b = append(b, 2<<3|lengthDelimited, byte(1+uvarintSize(uint64(d))), 1<<3|varint)
		b = binary.AppendUvarint(b, uint64(d))
	}
	return b
}

func uvarintSize(v uint64) int { return max(1, (bits.Len64(v)+6)/7) }

// tensor writes a tensor. The caller keeps its reference.
func (w *writer) tensor(field int, t *tensor.Tensor) {
	e := w.encode(t)
	w.key(field, lengthDelimited)
	w.uvarint(uint64(e.size()))
	w.content(&e)
}

func (w *writer) namedTensor(field int, t *message.NamedTensor) {
	e := w.encode(&t.Tensor)
	size := 1 + uvarintSize(uint64(len(t.Name))) + len(t.Name) + 1 + uvarintSize(uint64(e.size())) + e.size()
	w.key(field, lengthDelimited)
	w.uvarint(uint64(size))
	w.element(1, t.Name)
	w.key(2, lengthDelimited)
	w.uvarint(uint64(e.size()))
	w.content(&e)
}

func (w *writer) namedTensors(field int, ts []message.NamedTensor) {
	for i := range ts {
		w.namedTensor(field, &ts[i])
	}
}

func (w *writer) content(e *encodedTensor) {
	w.tail = append(w.tail, e.head...)
	w.head = e.head
	w.bytes(e.content, e.shared)
}

// bytes writes bytes that must not change until the message is sent. If they belong to a tensor,
// the message holds a reference to it.
func (w *writer) bytes(b []byte, of *tensor.Tensor) {
	if len(b) <= inlineContent {
		w.tail = append(w.tail, b...)
		return
	}
	w.flush()
	w.out.data = append(w.out.data, b)
	if of != nil {
		w.out.held = append(w.out.held, of.Retain())
	}
}
