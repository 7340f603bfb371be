package hdf5

import (
	"bytes"
	"encoding/binary"

	"github.com/weft-ml/weft/status"
)

// symbolTable says where the members of a group are.
type symbolTable struct {
	tree uint64 // address of the root of a B-tree
	heap uint64 // address of a local heap with the names
}

// link is a member of a group.
type link struct {
	name   string
	header uint64 // address
}

// links returns the members of a group.
func (o *Object) links() ([]link, error) {
	if o.group == nil {
		return nil, status.InvalidArgumentf("%s of the HDF5 file is not a group", o.path)
	}
	names, err := o.file.localHeap(o.group.heap)
	if err != nil {
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", o.path, err)
	}
	w := &treeWalk{file: o.file, names: names, left: len(names), seen: map[uint64]bool{}}
	if err := w.node(o.group.tree, 256); err != nil {
		return nil, status.Errorf(status.CodeOf(err), "%s: %w", o.path, err)
	}
	return w.links, nil
}

// localHeap returns the data of a local heap.
func (f *File) localHeap(address uint64) ([]byte, error) {
	head, err := f.read(address, 32)
	if err != nil {
		return nil, err
	}
	if string(head[:4]) != "HEAP" {
		return nil, status.DataLossf("no local heap at byte %d", address)
	}
	return f.read(binary.LittleEndian.Uint64(head[24:]), binary.LittleEndian.Uint64(head[8:]))
}

// treeWalk collects the members of a group from its B-tree.
type treeWalk struct {
	file  *File
	names []byte
	left  int             // bytes of names that are not taken yet; each belongs to one member
	seen  map[uint64]bool // addresses of nodes; a file that repeats one is damaged
	links []link
}

// node visits a node of the B-tree, whose level must be less than limit.
func (w *treeWalk) node(address uint64, limit int) error {
	if w.seen[address] {
		return status.DataLossf("the B-tree of the group has node %d twice", address)
	}
	w.seen[address] = true
	head, err := w.file.read(address, 8)
	if err != nil {
		return err
	}
	level, entries := int(head[5]), uint64(binary.LittleEndian.Uint16(head[6:]))
	if string(head[:4]) != "TREE" || head[4] != 0 || level >= limit {
		return status.DataLossf("no B-tree of a group at byte %d", address)
	}
	b, err := w.file.read(address+24, 16*entries)
	if err != nil {
		return err
	}
	for i := range entries {
		child := binary.LittleEndian.Uint64(b[16*i+8:])
		if level > 0 {
			err = w.node(child, level)
		} else {
			err = w.symbols(child)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// symbols adds the members of a symbol table node.
func (w *treeWalk) symbols(address uint64) error {
	if w.seen[address] {
		return status.DataLossf("the B-tree of the group has symbols %d twice", address)
	}
	w.seen[address] = true
	head, err := w.file.read(address, 8)
	if err != nil {
		return err
	}
	if string(head[:4]) != "SNOD" {
		return status.DataLossf("no symbol table node at byte %d", address)
	}
	const size = 40 // bytes of an entry
	n := uint64(binary.LittleEndian.Uint16(head[6:]))
	b, err := w.file.read(address+8, size*n)
	if err != nil {
		return err
	}
	for i := range n {
		entry := b[size*i:]
		at := binary.LittleEndian.Uint64(entry)
		if at >= uint64(len(w.names)) {
			return status.DataLossf("a name at byte %d of a local heap of %d", at, len(w.names))
		}
		end := bytes.IndexByte(w.names[at:], 0)
		if end < 0 || end >= w.left {
			return status.DataLossf("the names of the group are longer than its local heap")
		}
		w.left -= end + 1
		l := link{string(w.names[at:][:end]), binary.LittleEndian.Uint64(entry[8:])}
		if l.header != undefined { // symbolic links have no header
			w.links = append(w.links, l)
		}
	}
	return nil
}

// text returns the bytes before the first zero.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
