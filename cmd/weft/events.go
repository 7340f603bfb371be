package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/summary"
	"github.com/weft-ml/weft/tensor"
)

func newEvents() *cobra.Command {
	return group("events", "Show the contents of event files", newEventsLs(), newEventsExport())
}

// readEvents calls visit with all events in a file, or in all event files in a folder.
func readEvents(path string, visit func(summary.Event)) error {
	files := []string{path}
	if info, err := (fileio.Files{}).Stat(path); err == nil && info.IsDir() {
		if files, err = summary.Files(path); err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("%s: the folder contains no event file", path)
		}
	}
	for _, file := range files {
		r, err := summary.Open(file)
		if err != nil {
			return err
		}
		err = eachEvent(r, visit)
		_ = r.Close() // reading is complete
		if err != nil {
			return err
		}
	}
	return nil
}

// eachEvent calls visit with each event in a file.
func eachEvent(r *summary.Reader, visit func(summary.Event)) error {
	for e, err := range r.Events() {
		if err != nil {
			return err
		}
		visit(e)
	}
	return nil
}

// tagInfo is a tag in the output of weft events ls.
type tagInfo struct {
	Tag   string `json:"tag"`
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	First int64  `json:"first_step"`
	Last  int64  `json:"last_step"`
}

func newEventsLs() *cobra.Command {
	cmd := &cobra.Command{Use: "ls FILE|FOLDER", Short: "List the tags of event files", Args: exactly("FILE")}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tags := map[[2]string]*tagInfo{}
		err := readEvents(args[0], func(e summary.Event) {
			for _, item := range contents(e) {
				at := [2]string{item.kind, item.tag}
				if tags[at] == nil {
					tags[at] = &tagInfo{Tag: item.tag, Kind: item.kind, First: e.Step}
				}
				tags[at].Count++
				tags[at].Last = e.Step
			}
		})
		if err != nil {
			return err
		}
		list := []tagInfo{}
		for _, at := range slices.SortedFunc(maps.Keys(tags), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
			list = append(list, *tags[at])
		}
		return show(cmd, *output, list, func(w io.Writer) {
			table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			for _, t := range list {
				fmt.Fprintf(table, "%s\t%s\t%d\tsteps %d to %d\n", t.Kind, t.Tag, t.Count, t.First, t.Last)
			}
			_ = table.Flush() // fails only if the output is closed, like Fprintf
		})
	}
	return cmd
}

// content is an item of an event.
type content struct {
	kind, tag string
	value     any // for export; nil if it has no form as text or JSON
}

func contents(e summary.Event) []content {
	switch {
	case e.Graph != nil:
		return []content{{"graph", "", nil}}
	case e.MetaGraph != nil:
		return []content{{"meta graph", "", nil}}
	case e.Session != nil:
		return []content{{"session", sessionStates[e.Session.Status], e.Session.Checkpoint + e.Session.Message}}
	case e.RunMetadata != nil:
		return []content{{"run metadata", e.RunMetadata.Tag, nil}}
	case e.Log != nil:
		return []content{{"log", "", e.Log.Message}}
	}
	var items []content
	for _, v := range e.Values {
		kind, value := kindOf(v)
		items = append(items, content{kind, v.Tag, value})
	}
	return items
}

var sessionStates = map[summary.SessionStatus]string{
	summary.SessionStart: "start", summary.SessionStop: "stop", summary.SessionCheckpoint: "checkpoint",
}

// kindOf returns the kind of a value and its form for export.
func kindOf(v summary.Value) (string, any) {
	switch data := v.Data.(type) {
	case float32:
		return "scalar", jsonValue(data)
	case summary.Histogram:
		return "histogram", map[string]any{
			"min": jsonFloat(data.Min, 64), "max": jsonFloat(data.Max, 64), "count": jsonFloat(data.Count, 64), "sum": jsonFloat(data.Sum, 64),
		}
	case summary.Image:
		return "image", map[string]any{"height": data.Height, "width": data.Width}
	case summary.Audio:
		return "audio", nil
	case tensor.Tensor:
		if v.Plugin != "" {
			return v.Plugin, jsonValue(data.Go())
		}
		return "tensor", jsonValue(data.Go())
	}
	return "other", nil
}

// exported is a line in the output of weft events export.
type exported struct {
	Step  int64     `json:"step"`
	Time  time.Time `json:"time"`
	Kind  string    `json:"kind"`
	Tag   string    `json:"tag"`
	Value any       `json:"value,omitempty"`
}

func newEventsExport() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export FILE|FOLDER", Short: "Print the values in event files as a table or as JSON",
		Long: "Print the values in event files, one per line: step, time, kind, tag and value, separated by tabs. With -o json, print " +
			"a list of objects.",
		Args: exactly("FILE"),
	}
	output := outputFlag(cmd)
	tags := cmd.Flags().StringSlice("tags", nil, "tags to export (default: all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		list := []exported{}
		err := readEvents(args[0], func(e summary.Event) {
			for _, item := range contents(e) {
				if len(*tags) == 0 || slices.Contains(*tags, item.tag) {
					list = append(list, exported{e.Step, e.Time.UTC(), item.kind, item.tag, item.value})
				}
			}
		})
		if err != nil {
			return err
		}
		return show(cmd, *output, list, func(w io.Writer) {
			for _, x := range list {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", x.Step, x.Time.Format(time.RFC3339Nano), x.Kind, x.Tag, inLine(x.Value))
			}
		})
	}
	return cmd
}

// inLine returns a value as JSON in one line, or "" for nil.
func inLine(v any) string {
	if v == nil {
		return ""
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
