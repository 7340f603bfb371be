// Package loglimit bounds the number of lines that a log gets in one second, so that requests from
// outside cannot fill a disk.
package loglimit

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// A Handler passes on records, at most a number in each second. The others are counted, and a
// record with their number follows when the second is over.
type Handler struct {
	next  slog.Handler
	state *state // shared by the handlers that WithAttrs and WithGroup return
}

type state struct {
	most int          // records in one second; 0 for no limit
	out  slog.Handler // of the record with the number of omitted ones

	mu      sync.Mutex
	passed  int         // records of this second; guarded by mu
	omitted int         // guarded by mu
	timer   *time.Timer // ends the second; nil if no record has begun one; guarded by mu
}

// New returns a handler that passes at most a number of records in one second to next. 0 is no
// limit.
func New(next slog.Handler, most int) *Handler {
	return &Handler{next, &state{most: most, out: next}}
}

// Enabled implements [slog.Handler].
func (h *Handler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// WithAttrs implements [slog.Handler].
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.next.WithAttrs(attrs), h.state}
}

// WithGroup implements [slog.Handler].
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.state}
}

// Handle implements [slog.Handler].
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	if !h.state.pass() {
		return nil
	}
	return h.next.Handle(ctx, r)
}

// pass counts a record and reports whether it is passed on.
func (s *state) pass() bool {
	if s.most <= 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Second, s.flush)
	}
	if s.passed == s.most {
		s.omitted++
		return false
	}
	s.passed++
	return true
}

// Flush writes the number of omitted records, if there are some.
func (h *Handler) Flush() { h.state.flush() }

// flush ends a second.
func (s *state) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	omitted := s.omitted
	if s.timer != nil {
		s.timer.Stop()
	}
	s.passed, s.omitted, s.timer = 0, 0, nil
	if omitted > 0 {
		text := fmt.Sprintf("%d lines were left out (%d in one second, set by --max-log-rate)", omitted, s.most)
		// slog ignores errors of handlers, too
		_ = s.out.Handle(context.Background(), slog.NewRecord(time.Now(), slog.LevelWarn, text, 0))
	}
}
