package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/format/fileio"
)

// traceMargin is the time that a recording may take in addition to its duration.
const traceMargin = 90 * time.Second

func newTrace() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace TARGET",
		Short: "Record what all tasks of a cluster execute, as a timeline",
		Long: "Ask a task of Weft, such as grpc://localhost:2222, to record all tasks of its cluster: nodes, transfers, steps and waits. " +
			"The recording is written as a timeline that https://ui.perfetto.dev and chrome://tracing open; a summary says where the time went. " +
			"The exit status is 1 if a task could not be recorded.",
		Args: exactly("TARGET"),
	}
	var tls clientTLSFlags
	tls.add(cmd.Flags())
	duration := cmd.Flags().Duration("duration", 5*time.Second, "how long to record, at most 9m55s")
	steps := cmd.Flags().Int("steps", 0, "stop when a task has finished this number of steps as a master; 0 for no limit")
	path := cmd.Flags().StringP("output", "o", "trace.json", `file of the timeline; "" for the summary alone`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *path != "" { // an unwritable folder is found before the recording
			if err := (fileio.Files{}).Write(*path, nil); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), *duration+traceMargin)
		defer cancel()
		recording, err := weft.RecordCluster(ctx, args[0], *duration, *steps, tls.targetOptions()...)
		if err != nil {
			return err
		}
		if err := writeRecording(cmd, recording, *path); err != nil {
			return err
		}
		if len(recording.Missing()) > 0 {
			return exitError{exitFault}
		}
		return nil
	}
	return cmd
}

// writeRecording writes the timeline and prints the summary.
func writeRecording(cmd *cobra.Command, recording *weft.Recording, path string) error {
	if path != "" {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := recording.WriteTrace(f); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if err := recording.WriteSummary(cmd.OutOrStdout()); err != nil {
		return err
	}
	if path != "" {
		fmt.Fprintf(cmd.OutOrStdout(), "\nwrote %s\n", path)
	}
	return nil
}
