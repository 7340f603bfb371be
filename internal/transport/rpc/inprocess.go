package rpc

import (
	"context"
	"log/slog"
	"sync"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// Open returns a master of this process for one session with the given configuration, and what is
// to be called when the session is over. A master that is the session's own logs to log.
type Open func(config *pb.ConfigProto, log *slog.Logger) (m Master, done func(context.Context), err error)

// inProcess are the targets that are reached without a connection.
var inProcess = struct {
	mu   sync.Mutex
	open map[string]Open // guarded by mu; by target
}{open: map[string]Open{}}

// RegisterTarget lets clients in this process reach the master behind a target by plain calls,
// until remove is called. A target that is registered already is taken over.
func RegisterTarget(target string, open Open) (remove func()) {
	inProcess.mu.Lock()
	defer inProcess.mu.Unlock()
	inProcess.open[target] = open
	return func() {
		inProcess.mu.Lock()
		defer inProcess.mu.Unlock()
		delete(inProcess.open, target)
	}
}

// LookupTarget returns how to open a target of this process, or nil if it is not one.
func LookupTarget(target string) Open {
	inProcess.mu.Lock()
	defer inProcess.mu.Unlock()
	return inProcess.open[target]
}
