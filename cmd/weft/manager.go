package main

import (
	"context"
	"log/slog"

	"github.com/weft-ml/weft/internal/sys/sdnotify"
)

// serviceManager returns the notifier of the service manager that waits for this process, nil if
// there is none.
func serviceManager(log *slog.Logger) *sdnotify.Notifier {
	n, err := sdnotify.New()
	if err != nil {
		log.Warn("the service manager is not told that the process is ready", "error", err)
	}
	return n
}

// reportReady tells the service manager that the process serves, that it stops when ctx ends, and
// signs of life for which check returns nil. The caller must call done when the process has stopped
// to serve.
func reportReady(ctx context.Context, n *sdnotify.Notifier, about string, check func(context.Context) error) (done func()) {
	n.Ready(about)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		n.Stopping("running steps may end")
	})
	unwatch := n.Watch(check)
	return func() {
		if !stop() {
			<-stopped
		}
		unwatch()
		n.Close()
	}
}
