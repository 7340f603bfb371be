package logging

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// tailLines is the number of lines that a Tail keeps.
	tailLines = 1000
	// tailValue is the longest message or value of a field in a Tail, in bytes. With 16 fields a
	// Tail then takes at most 17 MB; lines of usual length take 300 kB.
	tailValue = 1 << 10
	// tailFields is the largest number of fields of a line in a Tail.
	tailFields = 16
)

// A Line is a line of the log.
type Line struct {
	Time    time.Time
	Level   slog.Level
	Message string
	Fields  []Field
}

// A Field is a field of a line. Fields of a group have the name of the group before theirs.
type Field struct{ Name, Value string }

// A Tail keeps the last lines of a log. The zero Tail is empty. Its methods may be called
// concurrently.
type Tail struct {
	mu    sync.Mutex
	lines []Line // guarded by mu
	next  int    // place of the next line, once there are tailLines; guarded by mu
}

// Lines returns the last n lines of at least a level, the oldest first.
func (t *Tail) Lines(n int, level slog.Level) []Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Line
	for i := range t.lines {
		l := t.lines[(t.next+len(t.lines)-1-i)%len(t.lines)]
		if len(out) >= n {
			break
		}
		if l.Level >= level {
			out = append(out, l)
		}
	}
	slices.Reverse(out)
	return out
}

// add adds a line and drops the oldest one if there are too many.
func (t *Tail) add(l Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) < tailLines {
		t.lines = append(t.lines, l)
		return
	}
	t.lines[t.next] = l
	t.next = (t.next + 1) % tailLines
}

// Handler returns a handler that keeps the records that next is enabled for, and passes them on.
func (t *Tail) Handler(next slog.Handler) slog.Handler { return &tailHandler{next: next, tail: t} }

type tailHandler struct {
	next   slog.Handler
	tail   *Tail
	fields []Field // of WithAttrs
	prefix string  // the names of groups, each followed by a dot
}

// Enabled implements [slog.Handler].
func (h *tailHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// WithAttrs implements [slog.Handler].
func (h *tailHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := &tailHandler{h.next.WithAttrs(attrs), h.tail, slices.Clip(h.fields), h.prefix}
	for _, a := range attrs {
		out.fields = appendField(out.fields, h.prefix, a)
	}
	return out
}

// WithGroup implements [slog.Handler].
func (h *tailHandler) WithGroup(name string) slog.Handler {
	return &tailHandler{h.next.WithGroup(name), h.tail, h.fields, h.prefix + name + "."}
}

// Handle implements [slog.Handler].
func (h *tailHandler) Handle(ctx context.Context, r slog.Record) error {
	l := Line{r.Time, r.Level, cut(r.Message), slices.Clip(h.fields)}
	r.Attrs(func(a slog.Attr) bool {
		l.Fields = appendField(l.Fields, h.prefix, a)
		return true
	})
	h.tail.add(l)
	return h.next.Handle(ctx, r)
}

func appendField(out []Field, prefix string, a slog.Attr) []Field {
	if len(out) == tailFields {
		return out
	}
	return append(out, Field{prefix + a.Key, cut(a.Value.String())})
}

// cut returns a copy of the start of a text.
func cut(text string) string {
	if len(text) <= tailValue {
		return text
	}
	return strings.ToValidUTF8(text[:tailValue], "") + "…"
}
