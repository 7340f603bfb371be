// Package audit writes an audit log: one line of JSON for each event that concerns rights.
//
// A line names the event, the principal, and what it asked for. It never contains tensors, names of
// variables, or more than the first eight characters of a session's handle. At most 100 events that
// others cause are written in one second; the rest is counted in a line of its own.
package audit

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/status"
)

// Events.
const (
	ConnectionRefused = "connection refused"
	CallRefused       = "call refused"
	SessionMade       = "session made"
	SessionClosed     = "session closed"
	Reset             = "reset"
	CleanupAll        = "cleanup all"
	CertificateLoaded = "certificate loaded"
	Drain             = "drain"
)

// maxRate is the number of lines in one second.
const maxRate = 100

// An Event is a line of the log. Empty fields are left out.
type Event struct {
	Event     string
	Principal *trust.Principal
	Peer      string // address
	Method    string
	Session   string // handle
	Task      string // that writes the line
	Code      string
	Reason    string
}

// A Log is an audit log. Its methods may be called concurrently.
type Log struct {
	name     string // of the file; "" if it is not a file
	required bool
	warn     *slog.Logger
	now      func() time.Time

	mu      sync.Mutex
	out     io.Writer // guarded by mu
	file    *os.File  // guarded by mu; nil if out is not a file
	second  int64     // of the lines counted; guarded by mu
	lines   int       // written in that second; guarded by mu
	dropped int       // lines that were not written since the last count; guarded by mu
	failed  time.Time // time of the last warning of a failed write; guarded by mu
}

// Open returns a log that appends to a file, or writes to stderr if the name is "stderr". With
// required, calls fail whose lines cannot be written. Failed writes are reported to warn.
func Open(name string, stderr io.Writer, required bool, warn *slog.Logger) (*Log, error) {
	l := &Log{required: required, warn: warn, now: time.Now, out: stderr}
	if name == "stderr" {
		return l, nil
	}
	l.name = name
	return l, l.Reopen()
}

// Reopen opens the file again, after it was renamed.
func (l *Log) Reopen() error {
	if l.name == "" {
		return nil
	}
	f, err := os.OpenFile(l.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.out = f, f
	return nil
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file, l.out = nil, io.Discard
	return f.Close()
}

// Write writes a line. A failure is reported to the log of the task.
func (l *Log) Write(e Event) { _ = l.write(e) }

// Require writes a line. It returns err, or an error that the line could not be written if that is
// required.
func (l *Log) Require(e Event, err error) error {
	if failure := l.write(e); failure != nil && l.required {
		return status.Unavailablef("the audit log cannot be written (--audit-required): %w", failure)
	}
	return err
}

func (l *Log) write(e Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if second := now.Unix(); second != l.second {
		l.second, l.lines = second, 0
	}
	if l.lines >= maxRate && !l.required {
		l.dropped++
		return nil
	}
	l.lines++
	var attrs []slog.Attr
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	if p := e.Principal; p != nil {
		add("principal", p.String())
		add("tenant", p.Tenant)
		add("role", p.Role.String())
	}
	add("peer", e.Peer)
	add("method", e.Method)
	short := e.Session[:min(8, len(e.Session))]
	add("session", short)
	add("task", e.Task)
	add("code", e.Code)
	if e.Session != "" { // a handle gives rights, so no reason may contain it
		e.Reason = strings.ReplaceAll(e.Reason, e.Session, short+"…")
	}
	add("reason", e.Reason)
	if l.dropped > 0 {
		attrs = append(attrs, slog.Int("count", l.dropped))
	}
	r := slog.NewRecord(now, slog.LevelInfo, e.Event, 0)
	r.AddAttrs(attrs...)
	w := &errorWriter{w: l.out}
	h := slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: rename})
	err := errors.Join(h.Handle(context.Background(), r), w.err)
	if err == nil {
		l.dropped = 0
		return nil
	}
	l.dropped++
	if now.Sub(l.failed) >= time.Minute {
		l.failed = now
		l.warn.Error("the audit log cannot be written; its lines are counted", "error", err)
	}
	return err
}

// errorWriter keeps the error of a write.
type errorWriter struct {
	w   io.Writer
	err error
}

func (w *errorWriter) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	if err != nil {
		w.err = err
	}
	return n, err
}

// rename gives the fields of slog the names of the audit log.
func rename(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "ts"
	case slog.MessageKey:
		a.Key = "event"
	case slog.LevelKey:
		return slog.Attr{}
	}
	return a
}
