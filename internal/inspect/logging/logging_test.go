package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/weft-ml/weft/status"
)

// name is a value with a text form.
type name struct{ job string }

func (n name) String() string { return "/job:" + n.job }

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func log(l *slog.Logger) {
	l = l.With("task", name{"ps"}, "session", "0123456789abcdef")
	l.Warn("a step waits", "step", 7, "for", 10*time.Second, "peers", []name{{"worker"}, {"chief"}}, "error", status.Unavailablef("gone: %w", io.EOF))
	l.Info("plain", "error", errors.New("no code"), "n", 1.5, "nothing", nil, "list", []string{"a"}, "map", map[string]int{"x": 1})
}

func TestFieldsAreUniform(t *testing.T) {
	var text, lines bytes.Buffer
	log(slog.New(Fields(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: withoutTime}))))
	log(slog.New(Fields(slog.NewJSONHandler(&lines, &slog.HandlerOptions{ReplaceAttr: withoutTime}))))
	const wantText = `level=WARN msg="a step waits" task=/job:ps session=01234567 step=7 for=10s peers="[/job:worker /job:chief]" error="gone: EOF" code=UNAVAILABLE
level=INFO msg=plain task=/job:ps session=01234567 error="no code" n=1.5 nothing=<nil> list=[a] map=map[x:1]
`
	const wantLines = `{"level":"WARN","msg":"a step waits","task":"/job:ps","session":"01234567","step":7,"for":"10s","peers":["/job:worker","/job:chief"],"error":"gone: EOF","code":"UNAVAILABLE"}
{"level":"INFO","msg":"plain","task":"/job:ps","session":"01234567","error":"no code","n":1.5,"nothing":null,"list":["a"],"map":"map[x:1]"}
`
	if text.String() != wantText {
		t.Errorf("got\n%swant\n%s", &text, wantText)
	}
	if lines.String() != wantLines {
		t.Errorf("got\n%swant\n%s", &lines, wantLines)
	}
}

// The handlers obey the rules of package slog.
func TestHandlers(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return Fields(new(Tail).Handler(slog.NewJSONHandler(&out, nil)))
	}, func(t *testing.T) map[string]any {
		var v map[string]any
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		return v
	})
}

func TestTail(t *testing.T) {
	var tail Tail
	if got := tail.Lines(10, slog.LevelDebug); got != nil {
		t.Errorf("an empty tail has %v", got)
	}
	l := slog.New(Fields(tail.Handler(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelInfo})))).With("task", name{"ps"}) //nolint:sloglint // a handler with a level
	l.Debug("not enabled")
	for i := range tailLines + 5 {
		l.Info("line", "n", i)
	}
	l.WithGroup("g").Error("long", "text", strings.Repeat("é", tailValue))
	got := tail.Lines(2, slog.LevelInfo)
	if len(got) != 2 || fmt.Sprint(got[0].Fields) != fmt.Sprintf("[{task /job:ps} {n %d}]", tailLines+4) {
		t.Errorf("got %v", got)
	}
	if f := got[1].Fields[1]; f.Name != "g.text" || f.Value != strings.Repeat("é", tailValue/2)+"…" {
		t.Errorf("the long line has %q", f)
	}
	if got := tail.Lines(2*tailLines, slog.LevelDebug); len(got) != tailLines || got[0].Fields[1].Value != "6" {
		t.Errorf("%d lines, the first %v", len(got), got[0])
	}
	if got := tail.Lines(10, slog.LevelWarn); len(got) != 1 {
		t.Errorf("warnings: %v", got)
	}
	if n := testing.AllocsPerRun(100, func() { l.Debug("off", "n", 1) }); n > 0 {
		t.Errorf("a line that is off allocates %v times", n)
	}
}

func TestAtLeast(t *testing.T) {
	var out bytes.Buffer
	l := slog.New(AtLeast(slog.LevelWarn, slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	l.With("a", 1).WithGroup("g").Info("quiet", "b", 2)
	l.With("a", 1).WithGroup("g").Warn("loud", "b", 2)
	if got := out.String(); got != "level=WARN msg=loud a=1 g.b=2\n" {
		t.Errorf("got %s", got)
	}
}

func TestLevels(t *testing.T) {
	var l Level
	for _, name := range []string{"debug", "info", "warn", "error"} {
		if err := l.Set(name); err != nil || l.String() != name {
			t.Errorf("%s: %s, %v", name, &l, err)
		}
	}
	if err := l.Set("loud"); err == nil || l.String() != "error" {
		t.Errorf("got %s, %v", &l, err)
	}
}
