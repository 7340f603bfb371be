// Package hdf5 reads the part of the Hierarchical Data Format 5 that Keras writes: files of version
// 0 of the superblock, whose groups are symbol tables, with datasets in one piece and attributes in
// object headers. The format is described in "HDF5 File Format Specification", version 3.0.
//
// It does not read chunked, compressed or external datasets, and no groups of the newer kind. They
// are Unimplemented errors. Damaged files are DataLoss errors.
package hdf5

import (
	"encoding/binary"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/weft-ml/weft/status"
)

const signature = "\x89HDF\r\n\x1a\n"

// undefined is the address of what does not exist.
const undefined = ^uint64(0)

// File is an open file. Its methods may be called concurrently if those of its reader may.
type File struct {
	r    io.ReaderAt
	size uint64
	root uint64 // address of the object header of the root group
}

// Open returns the file of the first size bytes of r. The file uses r until the caller is done with
// it.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: uint64(max(size, 0))}
	head, err := f.read(0, 9)
	if err != nil || string(head[:8]) != signature {
		return nil, status.DataLossf("not an HDF5 file")
	}
	if v := head[8]; v > 1 {
		return nil, status.Unimplementedf("the HDF5 file has a superblock of version %d; only version 0, which Keras writes, can be read", v)
	}
	b, err := f.read(0, 100)
	if err != nil {
		return nil, err
	}
	if b[13] != 8 || b[14] != 8 {
		return nil, status.Unimplementedf("the HDF5 file has addresses of %d bytes and lengths of %d, want 8", b[13], b[14])
	}
	at := 24 // of the base address
	if head[8] == 1 {
		at += 4
	}
	if base := binary.LittleEndian.Uint64(b[at:]); base != 0 {
		return nil, status.Unimplementedf("the HDF5 file begins at byte %d", base)
	}
	f.root = binary.LittleEndian.Uint64(b[at+40:])
	return f, nil
}

// read returns n bytes at an address.
func (f *File) read(address, n uint64) ([]byte, error) {
	if address > f.size || n > f.size-address {
		return nil, status.DataLossf("%d bytes at byte %d are beyond the end of an HDF5 file of %d", n, address, f.size)
	}
	b := make([]byte, n)
	if _, err := f.r.ReadAt(b, int64(address)); err != nil {
		return nil, status.DataLossf("reading an HDF5 file: %w", err)
	}
	return b, nil
}

// Object is a group or a dataset.
type Object struct {
	file       *File
	path       string
	attributes []attribute
	group      *symbolTable // nil for a dataset
	data       *Dataset     // nil for a group
}

// Root returns the root group.
func (f *File) Root() (*Object, error) { return f.object("/", f.root) }

// Path returns the path of the object within the file, such as "/layers/dense".
func (o *Object) Path() string { return o.path }

// Dataset returns the dataset, or nil for a group.
func (o *Object) Dataset() *Dataset { return o.data }

// IsGroup reports whether the object is a group.
func (o *Object) IsGroup() bool { return o.group != nil }

// Names returns the names of the members of a group, sorted; nil for a dataset.
func (o *Object) Names() ([]string, error) {
	if o.group == nil {
		return nil, nil
	}
	links, err := o.links()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.name
	}
	slices.Sort(names)
	return names, nil
}

// Find returns the member of a group at a path, such as "vars/0". The error has the code NotFound
// if there is none.
func (o *Object) Find(name string) (*Object, error) {
	at := o
	for part := range strings.SplitSeq(strings.Trim(name, "/"), "/") {
		links, err := at.links()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(links, func(l link) bool { return l.name == part })
		if i < 0 {
			return nil, status.NotFoundf("the HDF5 file has no %s", path.Join(at.path, part))
		}
		if at, err = o.file.object(path.Join(at.path, part), links[i].header); err != nil {
			return nil, err
		}
	}
	return at, nil
}
