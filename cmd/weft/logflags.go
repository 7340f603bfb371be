package main

import (
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/weft-ml/weft/internal/inspect/logging"
)

// logFlags are the flags of commands that keep running about their log.
type logFlags struct {
	format  logFormat
	level   logging.Level
	verbose bool
}

// add adds the flags. verbose says what the level debug logs.
func (f *logFlags) add(flags *pflag.FlagSet, verbose string) {
	f.format = logAuto
	flags.Var(&f.format, "log-format", "form of the log: text, json, or auto, which is text on a terminal and json elsewhere")
	flags.Var(&f.level, "log-level", "least level of the lines of the log: debug, info, warn or error")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "the same as --log-level=debug: "+verbose)
}

// handler returns the handler of the log, without the fields of package logging.
func (f *logFlags) handler(w io.Writer) slog.Handler {
	if f.verbose {
		f.level.LevelVar.Set(slog.LevelDebug)
	}
	options := &slog.HandlerOptions{Level: &f.level.LevelVar}
	if f.format.of(w) == logText {
		return slog.NewTextHandler(w, options)
	}
	return slog.NewJSONHandler(w, options)
}

// logger returns the log.
func (f *logFlags) logger(w io.Writer) *slog.Logger {
	return slog.New(logging.Fields(f.handler(w)))
}

// A logFormat is the form of the lines.
type logFormat string

// The formats.
const (
	logAuto logFormat = "auto" // text on a terminal, JSON elsewhere
	logText logFormat = "text"
	logJSON logFormat = "json"
)

// String implements pflag.Value.
func (f *logFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *logFormat) Type() string { return "format" }

// Set implements pflag.Value.
func (f *logFormat) Set(text string) error {
	switch *f = logFormat(text); *f {
	case logAuto, logText, logJSON:
		return nil
	}
	return errors.New("must be auto, text or json")
}

// of returns the format for a writer: logText or logJSON.
func (f logFormat) of(w io.Writer) logFormat {
	if f == logText || f == logJSON {
		return f
	}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return logText
	}
	return logJSON
}
