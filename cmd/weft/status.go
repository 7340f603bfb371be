package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
)

// statusTimeout bounds the wait for a target that cannot be reached.
const statusTimeout = 15 * time.Second

func newStatus() *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use:   "status TARGET",
		Short: "Show what the tasks of a cluster do and for whom they wait",
		Long: "Ask a task of Weft, such as grpc://localhost:2222, for the state of all tasks of its cluster: sessions, running steps and " +
			"the tasks that they wait for, recent errors of steps, variables, queues, memory and GPU devices. The exit status is 1 if a task does not answer.",
		Args: exactly("TARGET"),
	}
	f.add(cmd)
	resources := cmd.Flags().Bool("resources", false, "list each variable, queue and table")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tasks, err := f.ask(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		if err := show(cmd, *f.output, tasks, func(w io.Writer) { printStatus(w, tasks, *resources) }); err != nil {
			return err
		}
		for i := range tasks {
			if tasks[i].Error != "" {
				return exitError{exitFault}
			}
		}
		return nil
	}
	return cmd
}

func printStatus(w io.Writer, tasks []weft.TaskStatus, resources bool) {
	printTaskTable(w, tasks)
	for i := range tasks {
		t := &tasks[i]
		if t.Error != "" {
			fmt.Fprintf(w, "\n%s does not answer: %s\n", cluster.ShortName(t.Name), t.Error)
		}
		printGPUs(w, t)
		for _, s := range t.Sessions {
			printSession(w, t, &s)
		}
		printFailures(w, t)
		if resources {
			printResources(w, t)
		}
	}
}

// printTaskTable prints a table of the tasks.
func printTaskTable(w io.Writer, tasks []weft.TaskStatus) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TASK\tADDRESS\tSTATE\tUP\tMEMORY\tDEVICES\tSESSIONS\tSTEPS\tVARIABLES")
	for i := range tasks {
		printTask(table, &tasks[i])
	}
	_ = table.Flush() // an error shows in the next write
}

func printTask(w io.Writer, t *weft.TaskStatus) {
	name := cluster.ShortName(t.Name)
	switch {
	case t.Error != "":
		state := "silent"
		if strings.Contains(t.Error, "connection refused") {
			state = "not there"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t\t\t\t\t\t\n", name, t.Address, state)
		return
	case !t.Weft:
		fmt.Fprintf(w, "%s\t%s\tTensorFlow\t\t\t%d\t\t\t\n", name, t.Address, len(t.Devices))
		return
	}
	steps, variables, bytes := 0, 0, int64(0)
	for i := range t.Sessions {
		steps += len(t.Sessions[i].Steps)
	}
	for i := range t.Resources {
		if t.Resources[i].Kind == "variable" {
			variables++
			bytes += t.Resources[i].Bytes
		}
	}
	fmt.Fprintf(w, "%s\t%s\tup\t%v\t%s\t%d\t%d\t%d\t%d (%s)\n", name, t.Address, t.Uptime.Round(time.Second), mebibytes(t.Memory), len(t.Devices),
		len(t.Sessions), steps, variables, mebibytes(bytes))
}

// printGPUs prints a table of the GPU devices of a task.
func printGPUs(w io.Writer, t *weft.TaskStatus) {
	if len(t.GPUs) == 0 {
		return
	}
	fmt.Fprintf(w, "\nGPU devices of %s:\n", cluster.ShortName(t.Name))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  DEVICE\tIN USE\tPEAK\tLIMIT\tKERNELS\tKERNEL TIME\tCOPIES\tCOPIED")
	for i := range t.GPUs {
		g := &t.GPUs[i]
		_, name, _ := strings.Cut(g.Device, "/device:")
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%d\t%v\t%d\t%s\n", name, mebibytes(g.InUse), mebibytes(g.Peak), mebibytes(g.Limit), g.Kernels,
			g.KernelTime.Round(time.Millisecond), g.Copies, mebibytes(g.CopiedBytes))
	}
	_ = table.Flush() // an error shows in the next write
}

func printSession(w io.Writer, t *weft.TaskStatus, s *weft.SessionStatus) {
	owner := ""
	if s.Owner != "" {
		owner = " of " + s.Owner
	}
	fmt.Fprintf(w, "\nsession %s…%s at %s: %d nodes, open for %v\n", s.Handle, owner, cluster.ShortName(t.Name), s.Nodes, s.Age.Round(time.Second))
	for i := range s.Steps {
		st := &s.Steps[i]
		what := "running"
		if st.Failed {
			what = "failed, still running"
		}
		fmt.Fprintf(w, "  step %d, %s for at least %v, waits for:\n", st.ID, what, st.Running.Round(time.Second))
		for _, wait := range st.Waits {
			why := "answers, unfinished"
			if wait.Silent != "" {
				why = "SILENT: " + wait.Silent
			}
			at := ""
			if wait.Address != "" {
				at = " at " + wait.Address
			}
			fmt.Fprintf(w, "    %s%s: %s; %s\n", cluster.ShortName(wait.Task), at, wait.Call, why)
		}
	}
}

// shownFailures bounds the errors of a task that weft status prints.
const shownFailures = 3

func printFailures(w io.Writer, t *weft.TaskStatus) {
	for i := range min(len(t.Failures), shownFailures) {
		f := &t.Failures[i]
		where := ""
		if f.Task != "" {
			where = " on " + cluster.ShortName(f.Task)
		}
		fmt.Fprintf(w, "\n%s%s, %v ago, step %d of session %s… at %s", f.Code, where, time.Since(f.Last).Round(time.Second), f.Step, f.Session, cluster.ShortName(t.Name))
		if f.Count > 1 {
			fmt.Fprintf(w, ", %d times", f.Count)
		}
		fmt.Fprint(w, ":\n")
		for _, line := range errorLines(f.Message) {
			fmt.Fprintf(w, "  %s\n", printable(line))
		}
	}
}

// shownLines bounds the lines of an error that weft status prints.
const shownLines = 12

// errorLines returns the lines of an error that say what has happened: the lines before them name
// the tasks that the error came through.
func errorLines(message string) []string {
	var out []string
	for line := range strings.Lines(message) {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		through := strings.HasPrefix(line, "From /job:") && strings.HasSuffix(line, ":")
		if line != "" && !through && len(out) < shownLines {
			out = append(out, strings.ReplaceAll(line, "\t", "  "))
		}
	}
	if len(out) == 0 {
		return []string{"without a message"}
	}
	return out
}

func printResources(w io.Writer, t *weft.TaskStatus) {
	if len(t.Resources) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", cluster.ShortName(t.Name))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range t.Resources {
		r := &t.Resources[i]
		size := ""
		switch {
		case r.Kind == "queue":
			size = fmt.Sprintf("%d elements", r.Elements)
		case r.Bytes > 0:
			size = fmt.Sprintf("%d bytes", r.Bytes)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\n", r.Kind, r.Name, r.DType, r.Shape, size)
	}
	_ = table.Flush() // an error shows in the next write
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
