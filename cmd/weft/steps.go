package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
)

// runningStep is a running step, as weft steps prints it.
type runningStep struct {
	Task    string // the master of its session
	Session string // the first characters of the handle
	Owner   string
	weft.StepStatus
}

// openSession is an open session, as weft sessions prints it.
type openSession struct {
	Task string // the master
	weft.SessionStatus
}

// clusterFlags are the flags of the commands that ask a cluster for its state.
type clusterFlags struct {
	output *form
	tls    clientTLSFlags
}

func (f *clusterFlags) add(cmd *cobra.Command) {
	f.output = outputFlag(cmd)
	f.tls.add(cmd.Flags())
}

// ask returns the state of the cluster of a target.
func (f *clusterFlags) ask(ctx context.Context, target string) ([]weft.TaskStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return weft.ClusterStatus(ctx, target, f.tls.targetOptions()...)
}

// addList makes cmd print what list finds in the state of a cluster.
func addList[T any](cmd *cobra.Command, list func([]weft.TaskStatus) []T, write func(io.Writer, []T)) *cobra.Command {
	var f clusterFlags
	f.add(cmd)
	cmd.Args = exactly("TARGET")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tasks, err := f.ask(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		found := list(tasks)
		return show(cmd, *f.output, found, func(w io.Writer) { write(w, found) })
	}
	return cmd
}

func newSteps() *cobra.Command {
	return addList(&cobra.Command{
		Use:   "steps TARGET",
		Short: "List the running steps of a cluster and the tasks that they wait for",
		Long: "Ask a task of Weft, such as grpc://localhost:2222, for the running steps of all sessions of its cluster, the oldest first, " +
			"and the tasks that each waits for. A task that does not answer is marked as silent.",
	}, runningSteps, printSteps)
}

// runningSteps returns the running steps of all sessions, the oldest first.
func runningSteps(tasks []weft.TaskStatus) []runningStep {
	out := []runningStep{}
	for i := range tasks {
		for _, s := range tasks[i].Sessions {
			for _, st := range s.Steps {
				out = append(out, runningStep{cluster.ShortName(tasks[i].Name), s.Handle, s.Owner, st})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b runningStep) int { return cmp.Compare(b.Running, a.Running) })
	return out
}

func printSteps(w io.Writer, steps []runningStep) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STEP\tMASTER\tSESSION\tOWNER\tAGE\tSTATE\tWAITS FOR")
	for i := range steps {
		st := &steps[i]
		state := "running"
		if st.Failed {
			state = "failed"
		}
		first := fmt.Sprintf("%d\t%s\t%s\t%s\t%v\t%s", st.ID, st.Task, st.Session, st.Owner, st.Running.Round(time.Second), state)
		if len(st.Waits) == 0 {
			fmt.Fprintln(table, first+"\t")
		}
		for _, wait := range st.Waits {
			why := ""
			if wait.Silent != "" {
				why = " SILENT: " + wait.Silent
			}
			fmt.Fprintf(table, "%s\t%s: %s%s\n", first, cluster.ShortName(wait.Task), wait.Call, why)
			first = "\t\t\t\t\t"
		}
	}
	_ = table.Flush() // the next write shows an error
}

func newSessions() *cobra.Command {
	cmd := addList(&cobra.Command{
		Use:   "sessions TARGET",
		Short: "List the open sessions of a cluster",
		Long: "Ask a task of Weft, such as grpc://localhost:2222, for the open sessions of all masters of its cluster, the oldest first. " +
			"Handles are cut, because their owners alone may use them.",
	}, openSessions, printSessions)
	cmd.AddCommand(newCloseSessions())
	return cmd
}

// openSessions returns the open sessions of all masters, the oldest first.
func openSessions(tasks []weft.TaskStatus) []openSession {
	out := []openSession{}
	for i := range tasks {
		for _, s := range tasks[i].Sessions {
			out = append(out, openSession{cluster.ShortName(tasks[i].Name), s})
		}
	}
	slices.SortStableFunc(out, func(a, b openSession) int { return cmp.Compare(b.Age, a.Age) })
	return out
}

func printSessions(w io.Writer, sessions []openSession) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SESSION\tMASTER\tOWNER\tAGE\tNODES\tSTEPS")
	for i := range sessions {
		s := &sessions[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%v\t%d\t%d\n", s.Handle, s.Task, s.Owner, s.Age.Round(time.Second), s.Nodes, len(s.Steps))
	}
	_ = table.Flush() // the next write shows an error
}
