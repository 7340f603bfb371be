// Package logging has the levels of the log, the names of its fields, and the last lines for people
// who ask a task for them.
//
// All lines of a task have the same names for the same things: "task" is the task that writes the
// line, "peer" another task or the address of a client, "session" the start of the handle of a
// session, "step" the number of a step, "error" an error and "code" its canonical code.
package logging

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// ParseLevel returns the level of a name: debug, info, warn or error.
func ParseLevel(name string) (slog.Level, error) {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if name == LevelName(l) {
			return l, nil
		}
	}
	return 0, fmt.Errorf("the level %q: must be debug, info, warn or error", name)
}

// LevelName returns the name of a level.
func LevelName(l slog.Level) string { return strings.ToLower(l.String()) }

// A Level is a level of the log that can be changed while it is used.
type Level struct{ slog.LevelVar }

// String implements pflag.Value.
func (l *Level) String() string { return LevelName(l.LevelVar.Level()) }

// Type implements pflag.Value.
func (l *Level) Type() string { return "level" }

// Set implements pflag.Value.
func (l *Level) Set(name string) error {
	level, err := ParseLevel(name)
	if err == nil {
		l.LevelVar.Set(level)
	}
	return err
}

// AtLeast returns a handler that passes on records of at least a level that next is enabled for.
func AtLeast(level slog.Level, next slog.Handler) slog.Handler { return atLeast{next, level} }

type atLeast struct {
	slog.Handler
	level slog.Level
}

// Enabled implements [slog.Handler].
func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements [slog.Handler].
func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements [slog.Handler].
func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
