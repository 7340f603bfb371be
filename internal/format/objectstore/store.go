package objectstore

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/weft-ml/weft/status"
)

// Info describes an object.
type Info struct {
	Size int64     // in bytes
	Time time.Time // of the last change
	Tag  string    // differs from that of other contents under the same name
}

// Entry is an object or a folder in a folder.
type Entry struct {
	Name   string // without the path of the folder
	Folder bool
	Info   Info // of an object
}

// page is a part of a list of objects.
type page struct {
	entries []Entry // whose names are keys
	next    string  // where the next page begins; "" for the last
}

// service makes the calls of a kind of store. Objects that do not exist are a *failure with the
// status 404.
type service interface {
	head(ctx context.Context, n Name) (Info, error)
	// get fills b with the bytes from offset on, of the contents that have the tag.
	get(ctx context.Context, n Name, tag string, offset int64, b []byte) error
	// list lists the keys that begin with the key of n, or their parts up to the next slash.
	list(ctx context.Context, n Name, folders bool, from string, limit int) (page, error)
	put(ctx context.Context, n Name, b []byte) (Info, error)
	remove(ctx context.Context, n Name) error
	copy(ctx context.Context, from, to Name, size int64) error
	// start starts an upload of an object that is larger than a part.
	start(ctx context.Context, n Name) (upload, error)
	// extend replaces an object of at least minExtend bytes by its contents followed by b.
	extend(ctx context.Context, n Name, old Info, b []byte) (Info, error)
}

// upload is an object that is being sent. All parts but the last have at least minExtend bytes and
// a multiple of granule.
type upload interface {
	part(ctx context.Context, b []byte) error
	finish(ctx context.Context, last []byte) error
	abort(ctx context.Context) error
}

const (
	partSize  = 8 << 20
	minExtend = 5 << 20   // smallest part that S3 takes, except the last
	granule   = 256 << 10 // of the parts of Google Cloud Storage
	pageSize  = 1000      // of lists
)

// Stat describes an object. The error has the code NotFound if there is none.
func Stat(ctx context.Context, n Name) (Info, error) {
	if err := n.object(); err != nil {
		return Info{}, err
	}
	s, err := serviceOf(n.Scheme)
	if err != nil {
		return Info{}, err
	}
	info, err := s.head(ctx, n)
	return info, n.error(err)
}

// error explains a failed call.
func (n Name) error(err error) error {
	switch statusOf(err) {
	case 0:
		return err
	case http.StatusNotFound:
		return n.missing()
	case http.StatusPreconditionFailed:
		return status.Errorf(status.Aborted, "%s; the object was replaced while it was used", n)
	default:
		return (&request{name: n}).error(err, 1, 0)
	}
}

// IsFolder reports whether there are objects below a name. A bucket is a folder if it exists, also
// if it is empty.
func IsFolder(ctx context.Context, n Name) (bool, error) {
	s, err := serviceOf(n.Scheme)
	if err != nil {
		return false, err
	}
	p, err := s.list(ctx, n.below(), false, "", 1)
	if statusOf(err) == http.StatusNotFound {
		return false, nil
	}
	return err == nil && (n.Key == "" || len(p.entries) > 0), n.error(err)
}

// below returns the name with a slash at the end of its key.
func (n Name) below() Name {
	if n.Key != "" {
		n.Key += "/"
	}
	return n
}

// List calls f with what is in a folder until f returns an error. Names that do not begin with
// prefix are left out. A folder that does not exist is empty, unless the bucket does not exist
// (NotFound).
func List(ctx context.Context, folder Name, prefix string, f func(Entry) error) error {
	return list(ctx, folder, prefix, true, f)
}

// ListAll calls f with all objects below a folder, whose names are relative to the folder.
func ListAll(ctx context.Context, folder Name, f func(Entry) error) error {
	return list(ctx, folder, "", false, f)
}

func list(ctx context.Context, folder Name, prefix string, folders bool, f func(Entry) error) error {
	s, err := serviceOf(folder.Scheme)
	if err != nil {
		return err
	}
	below := folder.below()
	at := below
	at.Key += prefix
	for from := ""; ; {
		p, err := s.list(ctx, at, folders, from, pageSize)
		if statusOf(err) == http.StatusNotFound {
			return status.NotFoundf("The bucket %s was not found.", Name{Scheme: folder.Scheme, Bucket: folder.Bucket})
		}
		if err != nil {
			return folder.error(err)
		}
		for _, e := range p.entries {
			if e.Name = strings.TrimPrefix(e.Name, below.Key); e.Folder {
				e.Name = strings.TrimSuffix(e.Name, "/")
			}
			if e.Name == "" {
				continue // an object that stands for the folder
			}
			if err := f(e); err != nil {
				return err
			}
		}
		if from = p.next; from == "" {
			return nil
		}
	}
}

// Remove removes an object. It returns nil if there is none.
func Remove(ctx context.Context, n Name) error {
	s, err := serviceOf(n.Scheme)
	if err != nil {
		return err
	}
	if err := s.remove(ctx, n); statusOf(err) != http.StatusNotFound {
		return n.error(err)
	}
	return nil
}

// RemoveFolder removes all objects below a name.
func RemoveFolder(ctx context.Context, n Name) error {
	s, err := serviceOf(n.Scheme)
	if err != nil {
		return err
	}
	for from := ""; ; {
		p, err := s.list(ctx, n.below(), false, from, pageSize)
		if err != nil {
			return n.error(err)
		}
		for _, e := range p.entries {
			if err := s.remove(ctx, Name{n.Scheme, n.Bucket, e.Name}); err != nil && statusOf(err) != http.StatusNotFound {
				return n.error(err)
			}
		}
		if from = p.next; from == "" {
			return nil
		}
	}
}

// Rename copies an object to another name in the same kind of store, and removes the first. The
// second appears at once. An end of the process in between leaves both.
func Rename(ctx context.Context, from, to Name, info Info) error {
	if from.Scheme != to.Scheme {
		return status.Errorf(status.Unimplemented, "%s; cannot be renamed to %s in another store", from, to)
	}
	if from == to {
		return nil
	}
	s, err := serviceOf(from.Scheme)
	if err != nil {
		return err
	}
	if err := s.copy(ctx, from, to, info.Size); err != nil {
		return from.error(err)
	}
	return Remove(ctx, from)
}
