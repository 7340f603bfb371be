package objectstore

import (
	"context"
	"io"
	"sync"

	"github.com/weft-ml/weft/status"
)

// Reader reads an object. Its methods may be called concurrently. All bytes are those of the
// contents that the object had when it was opened; when it is replaced, reads fail with Aborted.
type Reader struct {
	service service
	name    Name
	info    Info

	mu     sync.Mutex
	at     int64            // position of Read; guarded by mu
	window []byte           // bytes around at, from start on; guarded by mu
	start  int64            // guarded by mu
	ahead  int              // size of the next window; guarded by mu
	blocks map[int64][]byte // by number; guarded by mu
	used   [maxBlocks]int64 // numbers of the blocks in order of their loads; guarded by mu
	loads  int              // guarded by mu
}

// Sizes in bytes. Small reads at random places load blocks: those of the tensors of a checkpoint
// are next to one another, and each request takes tens of milliseconds.
const (
	blockSize   = 1 << 20
	maxBlocks   = 8
	firstWindow = 256 << 10
	maxWindow   = 8 << 20
	maxGet      = 8 << 20 // of one request
	parallel    = 4       // requests at a time for one large read
)

// Open opens an object. The error has the code NotFound if there is none.
func Open(ctx context.Context, n Name) (*Reader, error) {
	info, err := Stat(ctx, n)
	if err != nil {
		return nil, err
	}
	s, err := serviceOf(n.Scheme)
	if err != nil {
		return nil, err
	}
	return &Reader{service: s, name: n, info: info, ahead: firstWindow}, nil
}

// Size returns the size of the object in bytes.
func (r *Reader) Size() int64 { return r.info.Size }

// get fills b, which ends within the object.
func (r *Reader) get(ctx context.Context, b []byte, offset int64) error {
	if len(b) == 0 {
		return nil
	}
	return r.name.error(r.service.get(ctx, r.name, r.info.Tag, offset, b))
}

// Read reads from the position on. Windows grow while the object is read in order.
func (r *Reader) Read(ctx context.Context, b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	if r.at >= r.info.Size {
		r.window = nil
		return 0, io.EOF
	}
	if r.at < r.start || r.at >= r.start+int64(len(r.window)) {
		n := min(int64(r.ahead), r.info.Size-r.at)
		if int64(cap(r.window)) < n {
			if err := r.name.take(n); err != nil {
				return 0, err
			}
			r.window = make([]byte, n)
		}
		r.window = r.window[:n]
		if err := r.get(ctx, r.window, r.at); err != nil {
			r.window = nil
			return 0, err
		}
		r.start, r.ahead = r.at, min(2*r.ahead, maxWindow)
	}
	n := copy(b, r.window[r.at-r.start:])
	r.at += int64(n)
	return n, nil
}

// Seek sets the position of Read.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.info.Size
	}
	if offset < 0 {
		return 0, status.InvalidArgumentf("%s; Invalid argument", r.name)
	}
	r.at = offset
	return offset, nil
}

// ReadAt reads at a place, as [io.ReaderAt] does.
func (r *Reader) ReadAt(ctx context.Context, b []byte, offset int64) (int, error) {
	if offset < 0 {
		return 0, status.InvalidArgumentf("%s; Invalid argument", r.name)
	}
	n := int(min(int64(len(b)), max(r.info.Size-offset, 0)))
	var end error
	if n < len(b) {
		b, end = b[:n], io.EOF
	}
	var err error
	if n < blockSize {
		err = r.small(ctx, b, offset)
	} else {
		err = r.large(ctx, b, offset)
	}
	if err != nil {
		return 0, err
	}
	return n, end
}

// small copies bytes of blocks.
func (r *Reader) small(ctx context.Context, b []byte, offset int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(b) > 0 {
		number := offset / blockSize
		block, ok := r.blocks[number]
		if !ok {
			size := min(blockSize, r.info.Size-number*blockSize)
			if err := r.name.take(size); err != nil {
				return err
			}
			block = make([]byte, size)
			if err := r.get(ctx, block, number*blockSize); err != nil {
				return err
			}
			if r.blocks == nil {
				r.blocks = map[int64][]byte{}
			}
			if r.loads >= maxBlocks {
				delete(r.blocks, r.used[r.loads%maxBlocks])
			}
			r.used[r.loads%maxBlocks], r.blocks[number] = number, block
			r.loads++
		}
		n := copy(b, block[offset-number*blockSize:])
		b, offset = b[n:], offset+int64(n)
	}
	return nil
}

// large makes several requests at a time, and waits for all.
func (r *Reader) large(ctx context.Context, b []byte, offset int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for len(b) > 0 && ctx.Err() == nil {
		piece := b[:min(len(b), maxGet)]
		at := offset
		b, offset = b[len(piece):], offset+int64(len(piece))
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := r.get(ctx, piece, at); err != nil {
				cancel(err) // the first error remains
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); status.CodeOf(cause) != status.Unknown {
			return cause
		}
		return status.FromContext(ctx, "reading "+r.name.String())
	}
	return nil
}
