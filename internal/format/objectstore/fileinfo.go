package objectstore

import (
	"io/fs"
	"time"
)

// fileInfo describes an object as a file.
type fileInfo struct {
	name   string
	folder bool
	info   Info
}

// FileInfo returns an object or a folder as a file. It is also its entry in a folder.
func FileInfo(name string, folder bool, info Info) interface {
	fs.FileInfo
	fs.DirEntry
} {
	return fileInfo{name, folder, info}
}

func (f fileInfo) Name() string               { return f.name }
func (f fileInfo) Size() int64                { return f.info.Size }
func (f fileInfo) ModTime() time.Time         { return f.info.Time }
func (f fileInfo) IsDir() bool                { return f.folder }
func (f fileInfo) Sys() any                   { return nil }
func (f fileInfo) Type() fs.FileMode          { return f.Mode().Type() }
func (f fileInfo) Info() (fs.FileInfo, error) { return f, nil }
func (f fileInfo) String() string             { return fs.FormatFileInfo(f) }

func (f fileInfo) Mode() fs.FileMode {
	if f.folder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
