package hdf5

import (
	"encoding/binary"

	"github.com/weft-ml/weft/status"
)

// Types of messages in object headers.
const (
	messageDataspace    = 0x01
	messageDatatype     = 0x03
	messageLayout       = 0x08
	messageFilters      = 0x0b
	messageAttribute    = 0x0c
	messageContinuation = 0x10
	messageSymbolTable  = 0x11
)

// object reads the object header at an address.
func (f *File) object(path string, address uint64) (*Object, error) {
	head, err := f.read(address, 16)
	if err != nil {
		return nil, err
	}
	if head[0] != 1 {
		return nil, status.Unimplementedf("%s has an object header of another version than 1, which Keras writes", path)
	}
	o := &Object{file: f, path: path}
	h := header{object: o}
	h.blocks = []span{{address + 16, uint64(binary.LittleEndian.Uint32(head[8:]))}}
	if err := h.parse(); err != nil {
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", path, err)
	}
	return o, nil
}

// span is a range of bytes of a file.
type span struct{ address, size uint64 }

// header is an object header that is being read.
type header struct {
	object *Object
	blocks []span
	space  *dataspace
	kind   *datatype
	layout *layout
	filter bool
}

// parse reads the messages of all blocks; a message may add a block.
func (h *header) parse() error {
	left := h.object.file.size // a header whose blocks overlap is damaged
	for i := 0; i < len(h.blocks); i++ {
		if h.blocks[i].size == 0 || h.blocks[i].size > left {
			return status.DataLossf("an object header whose blocks are larger than the file, or empty")
		}
		left -= h.blocks[i].size
		b, err := h.object.file.read(h.blocks[i].address, h.blocks[i].size)
		if err != nil {
			return err
		}
		for len(b) >= 8 {
			kind, size, flags := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:])), b[4]
			if size > len(b)-8 {
				return status.DataLossf("a message of %d bytes is longer than its object header", size)
			}
			if err := h.message(kind, flags, b[8:8+size]); err != nil {
				return err
			}
			b = b[8+size:]
		}
	}
	return h.finish()
}

func (h *header) message(kind uint16, flags byte, b []byte) (err error) {
	const shared = 2
	used := kind == messageDataspace || kind == messageDatatype || kind == messageLayout || kind == messageAttribute
	if used && flags&shared != 0 {
		return status.Unimplementedf("shared messages of object headers")
	}
	p := parser{b: b}
	switch kind {
	case messageDataspace:
		h.space, err = p.dataspace()
	case messageDatatype:
		h.kind, err = p.datatype()
	case messageLayout:
		h.layout, err = p.layout()
	case messageFilters:
		h.filter = true
	case messageAttribute:
		var a attribute
		if a, err = p.attribute(); err == nil {
			h.object.attributes = append(h.object.attributes, a)
		}
	case messageContinuation:
		at, size := p.uint(8), p.uint(8)
		h.blocks = append(h.blocks, span{at, size})
		err = p.err
	case messageSymbolTable:
		h.object.group = &symbolTable{tree: p.uint(8), heap: p.uint(8)}
		err = p.err
	}
	return err
}

// finish makes a dataset of the messages.
func (h *header) finish() error {
	if h.object.group != nil {
		return nil
	}
	switch {
	case h.space == nil || h.kind == nil || h.layout == nil:
		return status.Unimplementedf("neither a dataset nor a group with a symbol table")
	case h.filter:
		return status.Unimplementedf("compressed or filtered data")
	}
	h.object.data = &Dataset{file: h.object.file, path: h.object.path, shape: h.space.dims, empty: h.space.null, kind: *h.kind, layout: *h.layout}
	return nil
}

// parser reads fields in order. After the first error all fields are 0.
type parser struct {
	b   []byte
	err error
}

// uint returns an unsigned integer of n bytes, at most 8.
func (p *parser) uint(n int) uint64 {
	var v uint64
	for i, c := range p.bytes(n) {
		v |= uint64(c) << (8 * i)
	}
	return v
}

// bytes returns the next n bytes.
func (p *parser) bytes(n int) []byte {
	if p.err == nil && n > len(p.b) {
		p.err = status.DataLossf("an HDF5 message ends within a field")
	}
	if p.err != nil {
		return nil
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}
