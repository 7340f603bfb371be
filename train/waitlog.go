package train

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

const (
	// firstWaitLog is the time after which a waiting worker logs for the first time. A cluster
	// whose tasks start together is ready earlier.
	firstWaitLog = 10 * time.Second
	// waitLogInterval is the time between two later lines; TensorFlow's interval.
	waitLogInterval = 30 * time.Second
)

// A waitLogger logs what a worker waits for and for how long, from a goroutine of its own, since
// the worker itself may be blocked in a call to the cluster.
type waitLogger struct {
	log  *slog.Logger
	done chan struct{}
	wg   sync.WaitGroup

	mu     sync.Mutex
	reason string // what the worker waits for; guarded by mu
}

// startWaitLog starts to log. The caller calls stop.
func startWaitLog(log *slog.Logger, reason string) *waitLogger {
	w := &waitLogger{log: log, done: make(chan struct{}), reason: reason}
	w.wg.Go(w.run)
	return w
}

func (w *waitLogger) run() {
	begin, timer := time.Now(), time.NewTimer(firstWaitLog)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			w.mu.Lock()
			reason := w.reason
			w.mu.Unlock()
			w.log.Info("still waiting for the chief, which initializes or restores the model",
				"missing", reason, "waited", time.Since(begin).Round(time.Second))
			timer.Reset(waitLogInterval)
		case <-w.done:
			return
		}
	}
}

// setReason changes what the worker waits for.
func (w *waitLogger) setReason(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reason = reason
}

// stop ends the goroutine and waits for it.
func (w *waitLogger) stop() {
	close(w.done)
	w.wg.Wait()
}

// maxNamed is the number of variables that a log line names. A model may have thousands.
const maxNamed = 5

// abbreviate shortens a list of names that are separated by ", ".
func abbreviate(names string) string {
	list := strings.Split(names, ", ")
	if len(list) <= maxNamed {
		return names
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:maxNamed], ", "), len(list)-maxNamed)
}
