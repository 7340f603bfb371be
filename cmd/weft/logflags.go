package main

import (
	"io"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/internal/inspect/logging"
)

// logFlags are the flags of commands that keep running about their log.
type logFlags struct {
	format  logging.Format
	level   logging.Level
	verbose bool
}

// add adds the flags. verbose says what the level debug logs.
func (f *logFlags) add(flags *pflag.FlagSet, verbose string) {
	f.format = logging.Auto
	flags.Var(&f.format, "log-format", "form of the log: text, json, or auto, which is text on a terminal and json elsewhere")
	flags.Var(&f.level, "log-level", "least level of the lines of the log: debug, info, warn or error")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "the same as --log-level=debug: "+verbose)
}

// handler returns the handler of the log, without the fields of package logging.
func (f *logFlags) handler(w io.Writer) slog.Handler {
	if f.verbose {
		f.level.LevelVar.Set(slog.LevelDebug)
	}
	return logging.NewHandler(w, f.format, &f.level.LevelVar)
}

// logger returns the log.
func (f *logFlags) logger(w io.Writer) *slog.Logger {
	return slog.New(logging.Fields(f.handler(w)))
}
