package fileio

import (
	"path/filepath"
	"strings"

	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/status"
)

// The functions of this file are those of package filepath for paths that may have a scheme, such
// as "s3://bucket/key", which package filepath would change to "s3:/bucket/key".

// cut returns the scheme of a path with "://", or "", and the rest.
func cut(path string) (scheme, rest string) {
	if scheme = objectstore.Scheme(path); scheme != "" {
		scheme += "://"
	}
	return scheme, path[len(scheme):]
}

// IsRemote reports whether a path names an object of a store.
func IsRemote(path string) bool { return objectstore.Is(path) }

// Join joins parts to a path.
func Join(parts ...string) string {
	for len(parts) > 0 && parts[0] == "" {
		parts = parts[1:]
	}
	if len(parts) == 0 {
		return ""
	}
	scheme, first := cut(parts[0])
	if scheme == "" {
		return filepath.Join(parts...)
	}
	return scheme + filepath.ToSlash(filepath.Join(append([]string{first}, parts[1:]...)...))
}

// Dir returns the folder of a path: that of a bucket is the bucket.
func Dir(path string) string {
	scheme, rest := cut(path)
	switch {
	case scheme == "":
		return filepath.Dir(path)
	case !strings.Contains(rest, "/"):
		return path
	}
	return scheme + filepath.ToSlash(filepath.Dir(rest))
}

// Base returns the last part of a path.
func Base(path string) string {
	_, rest := cut(path)
	return filepath.Base(rest)
}

// Clean returns the shortest form of a path.
func Clean(path string) string {
	scheme, rest := cut(path)
	if scheme == "" {
		return filepath.Clean(path)
	}
	return scheme + filepath.ToSlash(filepath.Clean(rest))
}

// IsAbs reports whether a path depends on no folder.
func IsAbs(path string) bool {
	scheme, _ := cut(path)
	return scheme != "" || filepath.IsAbs(path)
}

// Abs returns a path that depends on no folder.
func Abs(path string) (string, error) {
	if scheme, _ := cut(path); scheme != "" {
		return Clean(path), nil
	}
	return filepath.Abs(path)
}

// Rel returns a path relative to a folder.
func Rel(dir, path string) (string, error) {
	dirScheme, dirRest := cut(dir)
	scheme, rest := cut(path)
	switch {
	case scheme != dirScheme:
		return "", status.InvalidArgumentf("%s is not relative to %s", path, dir)
	case scheme == "":
		return filepath.Rel(dir, path)
	}
	return filepath.Rel("/"+dirRest, "/"+rest)
}

// localPath returns the path in the file system of the machine of one with the scheme "file".
func localPath(path string) string {
	rest, ok := strings.CutPrefix(path, "file://")
	if !ok {
		return path
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:]
	}
	return ""
}
