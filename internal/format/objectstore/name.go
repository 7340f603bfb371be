// Package objectstore reads and writes the objects of Amazon S3, of other stores with its
// interface, and of Google Cloud Storage. Package fileio gives operations access to it, under paths
// such as "s3://bucket/key" and "gs://bucket/key".
//
// The clients are configured by the environment variables of the stores' own programs, and for S3
// by those of TensorFlow 1.x. Requests that fail in a way that may pass are repeated. An object
// appears with all of its bytes or not at all.
package objectstore

import (
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// The schemes of paths.
const (
	S3  = "s3"
	GCS = "gs"
)

// Name is the name of an object, or of the objects whose keys begin with Key and a slash.
type Name struct {
	Scheme, Bucket string
	Key            string // without a slash at its ends; "" for the bucket
}

// String returns the path of the object.
func (n Name) String() string {
	if n.Key == "" {
		return n.Scheme + "://" + n.Bucket
	}
	return n.Scheme + "://" + n.Bucket + "/" + n.Key
}

// Scheme returns the scheme of a path with "://", in TensorFlow's syntax, or "".
func Scheme(path string) string {
	scheme, _, found := strings.Cut(path, "://")
	if !found || scheme == "" {
		return ""
	}
	for i := range len(scheme) {
		c := scheme[i] | 0x20
		if letter := c >= 'a' && c <= 'z'; !letter && (i == 0 || scheme[i] != '.' && (scheme[i] < '0' || scheme[i] > '9')) {
			return ""
		}
	}
	return scheme
}

// Is reports whether a path names an object.
func Is(path string) bool {
	return strings.HasPrefix(path, S3+"://") || strings.HasPrefix(path, GCS+"://")
}

// Parse returns the name that a path has. Slashes that follow one another count as one. "." and
// ".." are InvalidArgument as parts of a key: stores take them literally, and proxies do not.
func Parse(path string) (Name, error) {
	scheme, rest, _ := strings.Cut(path, "://")
	kind := map[string]string{S3: "S3", GCS: "GCS"}[scheme]
	if kind == "" {
		return Name{}, status.Errorf(status.Unimplemented, "File system scheme '%s' not implemented (file: '%s')", scheme, path)
	}
	bucket, key, _ := strings.Cut(rest, "/")
	if bucket == "" || bucket == "." {
		return Name{}, status.InvalidArgumentf("%s path doesn't contain a bucket name: %s", kind, path)
	}
	if i := strings.IndexFunc(bucket, notInBucket); i >= 0 || bucket == ".." {
		return Name{}, status.InvalidArgumentf("%s; %q is not the name of a bucket", path, bucket)
	}
	parts := slices.DeleteFunc(strings.Split(key, "/"), func(part string) bool { return part == "" })
	if slices.Contains(parts, ".") || slices.Contains(parts, "..") {
		return Name{}, status.InvalidArgumentf("%s; the key of an object cannot have the parts \".\" and \"..\"", path)
	}
	key = strings.Join(parts, "/")
	if len(key) > maxKey {
		return Name{}, status.InvalidArgumentf("%s; the key has %d bytes, and stores allow %d", path, len(key), maxKey)
	}
	return Name{scheme, bucket, key}, nil
}

// maxKey is the largest length of a key in bytes, in both stores.
const maxKey = 1024

// notInBucket reports whether a character is not allowed in the names of buckets: those could lead
// a request to another host or path.
func notInBucket(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
}

// object returns an error unless the name has a key.
func (n Name) object() error {
	if n.Key == "" {
		return status.InvalidArgumentf("%s path doesn't contain an object name: %s", map[string]string{S3: "S3", GCS: "GCS"}[n.Scheme], n)
	}
	return nil
}

// missing returns TensorFlow's error for an object that does not exist.
func (n Name) missing() error {
	if n.Scheme == S3 {
		return status.NotFoundf("Object %s does not exist", n)
	}
	return status.NotFoundf("The specified path %s was not found.", n)
}

// take asks for memory for a part of the object: many files may be open at once.
func (n Name) take(bytes int64) error {
	if !membudget.Take(bytes) {
		return status.ResourceExhaustedf("%s; out of memory: there is none for %d bytes of the object", n, bytes)
	}
	return nil
}

// NotBucket returns an error if the name is that of a bucket.
func (n Name) NotBucket() error { return n.object() }

// In returns the name of an object in a folder.
func (n Name) In(name string) Name {
	n = n.below()
	n.Key += name
	return n
}
