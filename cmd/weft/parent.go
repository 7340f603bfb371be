package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// parentInterval is the time between checks of the parent. It bounds how long the port of a task
// remains in use after the parent was killed.
const parentInterval = 200 * time.Millisecond

// untilOrphaned returns a context that ends when ctx ends, or when the parent of this process is no
// longer the process pid, because that has ended. The caller must call stop. getppid returns the
// process id of the current parent.
//
// The operating system can send a signal instead, but on Linux it sends it when the thread that
// started this process ends, which in the parent may be any thread.
func untilOrphaned(ctx context.Context, pid int, getppid func() int) (orphaned context.Context, stop func(), err error) {
	if parent := getppid(); parent != pid {
		return nil, nil, fmt.Errorf("--parent=%d: the parent of this process is %d; the process %d has ended or is another one", pid, parent, pid)
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		ticker := time.NewTicker(parentInterval)
		defer ticker.Stop()
		for getppid() == pid {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
	return ctx, func() {
		cancel()
		watching.Wait()
	}, nil
}
