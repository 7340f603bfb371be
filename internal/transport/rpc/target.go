package rpc

import (
	"context"
	"log/slog"
	"sync"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// Open returns a master in this process for one session with the given configuration, and a
// function to call at the end of the session. A master that serves this session alone logs to log.
type Open func(config *pb.ConfigProto, log *slog.Logger) (m Master, done func(context.Context), err error)

// localTargets holds the targets that are reached without a connection.
var localTargets = struct {
	mu   sync.Mutex
	open map[string]Open // guarded by mu; by target
}{open: map[string]Open{}}

// RegisterTarget makes clients in this process call the master of a target directly, until remove
// is called. It replaces an earlier registration of the target.
func RegisterTarget(target string, open Open) (remove func()) {
	localTargets.mu.Lock()
	defer localTargets.mu.Unlock()
	localTargets.open[target] = open
	return func() {
		localTargets.mu.Lock()
		defer localTargets.mu.Unlock()
		delete(localTargets.open, target)
	}
}

// LookupTarget returns the function that opens a target in this process, or nil.
func LookupTarget(target string) Open {
	localTargets.mu.Lock()
	defer localTargets.mu.Unlock()
	return localTargets.open[target]
}
