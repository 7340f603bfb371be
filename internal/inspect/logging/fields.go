package logging

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/weft-ml/weft/status"
)

// The names of fields that this package treats specially.
const (
	sessionField = "session"
	errorField   = "error"
	codeField    = "code"
)

// shownHandle is the number of characters of the handle of a session in the log. The whole handle
// gives the right to use the session.
const shownHandle = 8

// Fields returns a handler that passes records on to next with uniform fields: an error is followed
// by its code, of the handle of a session only the first characters are left, and values with a
// text form have that form in JSON, too.
func Fields(next slog.Handler) slog.Handler { return fields{next} }

type fields struct{ next slog.Handler }

// Enabled implements [slog.Handler].
func (h fields) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// WithAttrs implements [slog.Handler].
func (h fields) WithAttrs(attrs []slog.Attr) slog.Handler {
	var out []slog.Attr
	for _, a := range attrs {
		out = appendUniform(out, a)
	}
	return fields{h.next.WithAttrs(out)}
}

// WithGroup implements [slog.Handler].
func (h fields) WithGroup(name string) slog.Handler { return fields{h.next.WithGroup(name)} }

// Handle implements [slog.Handler].
func (h fields) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(appendUniform(nil, a)...)
		return true
	})
	return h.next.Handle(ctx, out)
}

// appendUniform appends a field, and the code of an error.
func appendUniform(out []slog.Attr, a slog.Attr) []slog.Attr {
	v := a.Value.Resolve()
	err, failed := v.Any().(error)
	if failed {
		v = slog.StringValue(err.Error())
	} else {
		v = readable(v)
	}
	if a.Key == sessionField && v.Kind() == slog.KindString {
		v = slog.StringValue(v.String()[:min(shownHandle, len(v.String()))])
	}
	out = append(out, slog.Attr{Key: a.Key, Value: v})
	if a.Key == errorField && failed {
		if code := status.CodeOf(err); code != status.Unknown {
			out = append(out, slog.String(codeField, code.String()))
		}
	}
	return out
}

// readable returns a value in the form of its text: durations, and values and lists of values that
// have a method String.
func readable(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindDuration:
		return slog.StringValue(v.Duration().String())
	case slog.KindAny:
	default:
		return v
	}
	switch x := v.Any().(type) {
	case nil:
		return v
	case time.Time, []string:
		return v
	case fmt.Stringer:
		return slog.StringValue(x.String())
	}
	list := reflect.ValueOf(v.Any())
	if list.Kind() != reflect.Slice {
		return slog.StringValue(fmt.Sprint(v.Any()))
	}
	texts := make([]string, list.Len())
	for i := range texts {
		texts[i] = fmt.Sprint(list.Index(i).Interface())
	}
	return slog.AnyValue(texts)
}
