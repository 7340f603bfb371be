package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/inspect/logging"
)

func newLogs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logs TARGET",
		Short: "Print the last lines of the logs of a cluster",
		Long: "Ask a task of Weft, such as grpc://localhost:2222, for the last lines of the logs of all tasks of its cluster, in the order of " +
			"time. Each task keeps its last 1000 lines, of the level that it logs. The exit status is 1 if a task does not answer.",
		Args: exactly("TARGET"),
	}
	var f clusterFlags
	f.add(cmd)
	level := logging.Level{}
	_ = level.Set("debug")
	cmd.Flags().Var(&level, "level", "least level of the lines: debug, info, warn or error")
	lines := cmd.Flags().Int("lines", 200, "largest number of lines of each task")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
		defer cancel()
		if *lines < 1 {
			return usageError{fmt.Errorf("--lines must be at least 1")}
		}
		found, missing, err := weft.ClusterLog(ctx, args[0], level.String(), *lines, f.tls.targetOptions()...)
		if err != nil {
			return err
		}
		if err := show(cmd, *f.output, found, func(w io.Writer) { printLog(w, found) }); err != nil {
			return err
		}
		for _, task := range slices.Sorted(maps.Keys(missing)) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", task, missing[task])
		}
		if len(missing) > 0 {
			return exitError{exitFault}
		}
		return nil
	}
	return cmd
}

// printLog prints lines with the time of this machine's zone and the task in front.
func printLog(w io.Writer, lines []weft.LogLine) {
	for i := range lines {
		l := &lines[i]
		var fields strings.Builder
		task := ""
		for _, f := range l.Fields {
			if f.Name == "task" {
				task = cluster.ShortName(f.Value)
				continue
			}
			fmt.Fprintf(&fields, " %s=%s", f.Name, quoted(f.Value))
		}
		fmt.Fprintf(w, "%s %-5s %s: %s%s\n", l.Time.Format("2006-01-02 15:04:05.000"), strings.ToUpper(l.Level), task, printable(l.Message), fields.String())
	}
}

// quoted returns a value, in quotes if it is not one printable word.
func quoted(v string) string {
	if q := fmt.Sprintf("%q", v); v == "" || strings.ContainsAny(v, ` "=`) || q != `"`+v+`"` {
		return q
	}
	return v
}

// printable returns a text without control characters, which could change the terminal.
func printable(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%q", text), `"`), `"`)
}

// levelChange is what weft log-level has changed.
type levelChange struct {
	Target string
	Before string
	Level  string
	Error  string // why the level was not changed; "" if it was
}

func newLogLevel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "log-level TARGET [LEVEL]",
		Short: "Show or change the level of the log of a running task",
		Long: "Show the level of the log of a task, such as grpc://localhost:2222, or set it to debug, info, warn or error, until the task " +
			"ends. With certificates only operators may do so.",
		Example: "  weft log-level grpc://localhost:2222 debug --all",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				if _, err := logging.ParseLevel(args[1]); err != nil {
					return usageError{err}
				}
				return nil
			}
			return exactly("TARGET")(cmd, args)
		},
	}
	var f clusterFlags
	f.add(cmd)
	all := cmd.Flags().Bool("all", false, "all tasks of the cluster of the target")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
		defer cancel()
		targets := args[:1]
		if *all {
			tasks, err := f.ask(ctx, args[0])
			if err != nil {
				return err
			}
			targets = nil
			for i := range tasks {
				targets = append(targets, "grpc://"+tasks[i].Address)
			}
		}
		level := ""
		if len(args) == 2 {
			level = args[1]
		}
		changes := make([]levelChange, len(targets))
		var first error
		for i, target := range targets {
			c := &changes[i]
			c.Target = target
			var err error
			if c.Before, c.Level, err = weft.SetLogLevel(ctx, target, level, f.tls.targetOptions()...); err != nil {
				c.Error = err.Error()
				if first == nil {
					first = fmt.Errorf("%s: %w", target, err)
				}
			}
		}
		if err := show(cmd, *f.output, changes, func(w io.Writer) { printLevels(w, changes) }); err != nil {
			return err
		}
		return first
	}
	return cmd
}

func printLevels(w io.Writer, changes []levelChange) {
	for _, c := range changes {
		switch {
		case c.Error != "": // reported as the error of the command
		case c.Before == c.Level:
			fmt.Fprintf(w, "%s: %s\n", c.Target, c.Level)
		default:
			fmt.Fprintf(w, "%s: %s, was %s\n", c.Target, c.Level, c.Before)
		}
	}
}
