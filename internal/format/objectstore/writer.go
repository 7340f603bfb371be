package objectstore

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/status"
)

// Writer writes an object that appears, or replaces an older one, when Commit is called. Its
// methods must not be called concurrently.
type Writer struct {
	service service
	name    Name
	buf     []byte
	upload  upload // nil until a part is full
	parts   int
}

// Create returns a writer of an object. The caller must call Commit or Abort; Abort after Commit
// does nothing.
func Create(n Name) (*Writer, error) {
	if err := n.object(); err != nil {
		return nil, err
	}
	s, err := serviceOf(n.Scheme)
	if err != nil {
		return nil, err
	}
	return &Writer{service: s, name: n}, nil
}

// partOf returns the size of a part. Large objects have large parts, since S3 allows 10,000 of
// them.
func partOf(number int) int {
	switch {
	case number < 1000:
		return partSize
	case number < 3000:
		return 4 * partSize
	}
	return 16 * partSize
}

// maxParts is the number of parts that S3 allows.
const maxParts = 10_000

// Write appends bytes. It sends a part when one is full.
func (w *Writer) Write(ctx context.Context, b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		size := partOf(w.parts)
		if len(w.buf) == size {
			if err := w.send(ctx); err != nil {
				return written, err
			}
			continue
		}
		n := min(len(b), size-len(w.buf))
		if err := w.name.grow(&w.buf, n); err != nil {
			return written, err
		}
		w.buf = append(w.buf, b[:n]...)
		b, written = b[n:], written+n
	}
	return written, nil
}

// grow makes room for more bytes of the object in a buffer.
func (n Name) grow(buf *[]byte, more int) error {
	if cap(*buf)-len(*buf) >= more {
		return nil
	}
	room := max(2*cap(*buf), len(*buf)+more)
	if err := n.take(int64(room)); err != nil {
		return err
	}
	*buf = append(make([]byte, 0, room), *buf...)
	return nil
}

// send sends the buffer as a part that is not the last.
func (w *Writer) send(ctx context.Context) (err error) {
	if w.upload == nil {
		if w.upload, err = w.service.start(ctx, w.name); err != nil {
			return w.name.error(err)
		}
	}
	if err := w.upload.part(ctx, w.buf); err != nil {
		return w.name.error(err)
	}
	w.parts++
	w.buf = w.buf[:0]
	return nil
}

// Rename changes the key of the object, which is possible until a part was sent.
func (w *Writer) Rename(path string) bool {
	n, err := Parse(path)
	if err != nil || w.upload != nil || n.Scheme != w.name.Scheme || n.object() != nil {
		return false
	}
	w.name = n
	return true
}

// Commit makes the object appear. After an error an older object is unchanged.
func (w *Writer) Commit(ctx context.Context) error {
	if w.service == nil {
		return status.FailedPreconditionf("%s is closed", w.name)
	}
	var err error
	if w.upload == nil {
		_, err = w.service.put(ctx, w.name, w.buf)
	} else {
		err = w.upload.finish(ctx, w.buf)
	}
	if err != nil {
		w.Abort(ctx)
		return w.name.error(err)
	}
	w.service, w.upload, w.buf = nil, nil, nil
	return nil
}

// Abort removes what was written.
func (w *Writer) Abort(ctx context.Context) {
	if w.upload != nil {
		_ = w.upload.abort(context.WithoutCancel(ctx)) // the store removes what stays
	}
	w.service, w.upload, w.buf = nil, nil, nil
}

// Appender writes at the end of an object. What was written is visible after Sync and Close. Its
// methods may be called concurrently.
type Appender struct {
	service service
	name    Name

	mu      sync.Mutex
	stored  Info   // of the object; guarded by mu
	head    []byte // contents of an object that is too small for service.extend; guarded by mu
	tail    []byte // bytes that are not stored; guarded by mu
	changed bool   // there is something to store; guarded by mu
}

// OpenAppender opens an object for writing at its end. An object that does not exist is created,
// and if it is truncated, the contents of an existing one are removed.
func OpenAppender(ctx context.Context, n Name, truncate bool) (*Appender, error) {
	if err := n.object(); err != nil {
		return nil, err
	}
	s, err := serviceOf(n.Scheme)
	if err != nil {
		return nil, err
	}
	a := &Appender{service: s, name: n}
	if !truncate {
		info, err := Stat(ctx, n)
		switch {
		case err == nil:
			a.stored = info
		case status.CodeOf(err) != status.NotFound:
			return nil, err
		default:
			truncate = true
		}
	}
	if truncate {
		a.stored, err = s.put(ctx, n, nil)
		return a, n.error(err)
	}
	if a.stored.Size > 0 && a.stored.Size < minExtend {
		if err := n.take(a.stored.Size); err != nil {
			return nil, err
		}
		a.head = make([]byte, a.stored.Size)
		if err := s.get(ctx, n, a.stored.Tag, 0, a.head); err != nil {
			return nil, n.error(err)
		}
	}
	return a, nil
}

// Write appends bytes, and stores them when a part is full.
func (a *Appender) Write(ctx context.Context, b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.name.grow(&a.tail, len(b)); err != nil {
		return 0, err
	}
	a.tail = append(a.tail, b...)
	a.changed = true
	if len(a.tail) >= partSize {
		return len(b), a.storeLocked(ctx)
	}
	return len(b), nil
}

// Size returns the number of bytes written, including those before.
func (a *Appender) Size() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stored.Size + int64(len(a.tail))
}

// Sync stores what was written.
func (a *Appender) Sync(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.changed {
		return nil
	}
	return a.storeLocked(ctx)
}

func (a *Appender) storeLocked(ctx context.Context) error {
	var info Info
	var err error
	if a.stored.Size >= minExtend {
		info, err = a.service.extend(ctx, a.name, a.stored, a.tail)
	} else {
		if err := a.name.grow(&a.head, len(a.tail)); err != nil {
			return err
		}
		a.head = append(a.head, a.tail...)
		a.tail = nil
		info, err = a.service.put(ctx, a.name, a.head)
	}
	if err != nil {
		return a.name.error(err)
	}
	a.stored, a.tail, a.changed = info, nil, false
	if a.stored.Size >= minExtend {
		a.head = nil
	}
	return nil
}
