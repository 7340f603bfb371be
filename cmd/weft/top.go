package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weft-ml/weft"
)

func newTop() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "top TARGET",
		Short: "Show the tasks and running steps of a cluster repeatedly",
		Long: "Ask a task of Weft, such as grpc://localhost:2222, for the state of its cluster every --interval, until SIGINT. " +
			"On a terminal each state replaces the one before. With -o json each state is one JSON document.",
		Args: exactly("TARGET"),
	}
	f.add(cmd)
	interval := cmd.Flags().Duration("interval", 2*time.Second, "time between two requests")
	count := cmd.Flags().Int("count", 0, "number of requests; 0 for no end")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *interval <= 0 || *count < 0 {
			return usageError{fmt.Errorf("--interval must be positive and --count not negative")}
		}
		return watchCluster(cmd.Context(), *interval, *count, func() error {
			tasks, err := f.ask(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return show(cmd, *f.output, tasks, func(w io.Writer) { printTop(w, tasks) })
		})
	}
	return cmd
}

// watchCluster calls once every interval until ctx ends, or count times if that is not 0.
func watchCluster(ctx context.Context, interval time.Duration, count int, once func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 1; ; n++ {
		if err := once(); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if n == count {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// printTop prints the tasks and the running steps. It clears a terminal first.
func printTop(w io.Writer, tasks []weft.TaskStatus) {
	var text bytes.Buffer
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		text.WriteString("\x1b[H\x1b[2J")
	}
	fmt.Fprintf(&text, "%s\n\n", time.Now().Format(time.DateTime))
	printTaskTable(&text, tasks)
	fmt.Fprintln(&text)
	printSteps(&text, runningSteps(tasks))
	_, _ = w.Write(text.Bytes()) // the next write shows an error
}
