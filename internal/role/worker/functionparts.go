package worker

import (
	"context"
	"crypto/sha256"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// functionParts holds the parts of functions that a session has registered on other tasks. Graphs
// share them: otherwise tasks whose functions call each other would register new graphs at every
// level.
type functionParts struct {
	mu       sync.Mutex
	parts    map[partKey]*functionPart    // guarded by mu
	byHandle map[partHandle]*functionPart // guarded by mu
}

type partKey struct {
	task string
	sum  [sha256.Size]byte // hash of the graph
}

type partHandle struct{ task, handle string }

// functionPart is a graph on another task.
type functionPart struct {
	key    partKey
	users  int           // guarded by functionParts.mu
	lock   chan struct{} // interruptible mutex of the registration: holds a token while unlocked
	handle string        // "" until it is registered; guarded by lock
}

func newFunctionParts() *functionParts {
	return &functionParts{parts: map[partKey]*functionPart{}, byHandle: map[partHandle]*functionPart{}}
}

// use returns the handle of a graph on a task, with one more user. The first user registers it.
func (f *functionParts) use(ctx context.Context, task string, def *pb.GraphDef, register func() (string, error)) (string, error) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(def)
	if err != nil {
		return "", status.Internalf("a part of a function cannot be encoded: %v", err)
	}
	p := f.enter(partKey{task, sha256.Sum256(text)})
	handle, err := p.get(ctx, register)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.dropLocked(p)
		return "", err
	}
	f.byHandle[partHandle{task, handle}] = p
	return handle, nil
}

func (f *functionParts) enter(key partKey) *functionPart {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.parts[key]
	if p == nil {
		p = &functionPart{key: key, lock: make(chan struct{}, 1)}
		p.lock <- struct{}{}
		f.parts[key] = p
	}
	p.users++
	return p
}

// leave ends one use of a graph and reports whether it was the last.
func (f *functionParts) leave(task, handle string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.byHandle[partHandle{task, handle}]
	return p != nil && f.dropLocked(p)
}

func (f *functionParts) dropLocked(p *functionPart) bool {
	if p.users--; p.users > 0 {
		return false
	}
	delete(f.parts, p.key)
	delete(f.byHandle, partHandle{p.key.task, p.handle})
	return true
}

// get returns the handle, and registers the graph if it is not registered.
func (p *functionPart) get(ctx context.Context, register func() (string, error)) (string, error) {
	select {
	case <-p.lock:
	case <-ctx.Done():
		return "", status.FromContext(ctx, "registering a part of a function on "+p.key.task)
	}
	defer func() { p.lock <- struct{}{} }()
	if p.handle == "" {
		var err error
		if p.handle, err = register(); err != nil {
			return "", err
		}
	}
	return p.handle, nil
}
