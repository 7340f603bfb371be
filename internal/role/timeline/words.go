package timeline

import (
	"bufio"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// listed is the number of nodes and waits in a summary.
const listed = 10

// WriteSummary says in words where the time went.
func (t *Timeline) WriteSummary(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "recorded %v\n", round(t.Length))
	for i := range t.Tasks {
		task := &t.Tasks[i]
		switch {
		case task.Error != "":
			fmt.Fprintf(b, "%s is not recorded: %s\n", task.Name, task.Error)
		case task.Lost > 0:
			fmt.Fprintf(b, "%s: the recording was full; %d records are missing\n", task.Name, task.Lost)
		}
		if n := task.unfinished(); n > 0 {
			fmt.Fprintf(b, "%s: parts of steps still running at the end: %d ('weft status' shows for whom they wait)\n", task.Name, n)
		}
	}
	t.writeShares(b)
	writeTotals(b, "nodes that computed longest", t.Nodes(listed))
	writeTotals(b, "longest kernels and copies of GPUs", t.Kernels(listed))
	writeTotals(b, "longest waits", t.Waits(listed))
	t.writePath(b)
	return b.Flush()
}

func (t *Timeline) writeShares(w io.Writer) {
	shares := t.Shares()
	if len(shares) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "task\tsteps\tcompute\ttransfer\twait\tidle\treceived\t")
	for _, s := range shares {
		whole := s.Compute + s.Transfer + s.Wait + s.Idle
		part := func(d time.Duration) string { return fmt.Sprintf("%.1f%%", 100*float64(d)/float64(max(whole, 1))) }
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%.1f MiB\t\n", s.Task, s.Steps, part(s.Compute), part(s.Transfer), part(s.Wait), part(s.Idle),
			float64(s.Received)/(1<<20))
	}
	_ = table.Flush() // the buffered writer keeps the error
}

func writeTotals(w io.Writer, title string, totals []Total) {
	if len(totals) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range totals {
		fmt.Fprintf(table, "  %v\t%d×\tlongest %v\t%s\t%s\t%s\n", round(s.Took), s.Count, round(s.Longest), s.Task, s.Op, s.Name)
	}
	_ = table.Flush() // the buffered writer keeps the error
}

func (t *Timeline) writePath(w io.Writer) {
	took, segments := t.Path()
	if len(segments) == 0 {
		fmt.Fprintln(w, "\nno step was recorded from its begin to its end; weft steps shows the running ones and what they wait for")
		return
	}
	fmt.Fprintf(w, "\ncritical path of the slowest step (%v):\n", round(took))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range segments {
		if s.From != "" {
			fmt.Fprintf(table, "  %v\t%s → %s\t%s\n", round(s.Took), s.From, s.Task, s.Longest)
			continue
		}
		fmt.Fprintf(table, "  %v\t%s\tnodes: %d; longest: %s, %v; between nodes: %v\n", round(s.Took), s.Task, s.Nodes, s.Longest, round(s.LongestTook),
			round(s.Idle))
	}
	_ = table.Flush() // the buffered writer keeps the error
}

// round shortens a time to what is legible.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}
