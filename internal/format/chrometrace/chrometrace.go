// Package chrometrace writes timelines in the JSON form of Chrome's trace event format, which
// chrome://tracing and Perfetto display.
//
// The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
package chrometrace

import (
	"bufio"
	"container/heap"
	"encoding/json"
	"io"
	"sort"
	"time"
)

// Phases of events.
const (
	Complete  = "X" // an event with a duration
	Instant   = "i"
	Metadata  = "M"
	FlowStart = "s" // the begin of an arrow, inside a complete event
	FlowEnd   = "f" // its end, inside a complete event
)

// Names of metadata events.
const (
	ProcessName      = "process_name"
	ProcessSortIndex = "process_sort_index"
	ThreadName       = "thread_name"
	ThreadSortIndex  = "thread_sort_index"
)

// Event is an event of the format. Times are in microseconds.
type Event struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Start    float64        `json:"ts"`
	Took     *float64       `json:"dur,omitempty"` // of complete events
	Flow     int            `json:"id,omitempty"`  // joins the two ends of an arrow
	Bind     string         `json:"bp,omitempty"`  // "e" for the end of an arrow
	Scope    string         `json:"s,omitempty"`   // of instant events: "g", "p" or "t"
	Args     map[string]any `json:"args,omitempty"`
}

// Micros returns a time in microseconds.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Span returns a complete event.
func Span(name string, process, thread int, start, took time.Duration) Event {
	micros := Micros(took)
	return Event{Name: name, Phase: Complete, Process: process, Thread: thread, Start: Micros(start), Took: &micros}
}

// Name returns the event that names a process or thread.
func Name(kind string, process, thread int, name string) Event {
	return Event{Name: kind, Phase: Metadata, Process: process, Thread: thread, Args: map[string]any{"name": name}}
}

// SortIndex returns the event that gives a process or thread its place on the page.
func SortIndex(kind string, process, thread, index int) Event {
	return Event{Name: kind, Phase: Metadata, Process: process, Thread: thread, Args: map[string]any{"sort_index": index}}
}

// Write writes a file with the events, one on each line.
func Write(w io.Writer, events []Event) error {
	b := bufio.NewWriter(w)
	// Flush returns the error of a write.
	_, _ = b.WriteString("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")
	for i := range events {
		line, err := json.Marshal(&events[i])
		if err != nil {
			return err
		}
		if i > 0 {
			_, _ = b.WriteString(",\n")
		}
		_, _ = b.Write(line)
	}
	_, _ = b.WriteString("\n]}\n")
	return b.Flush()
}

// Rows assigns events that overlap to different rows. The zero value is ready for use.
type Rows struct {
	busy earliest // rows that are occupied; some may be free by now
	free lowest   // the others
}

// Place returns the first row that is free at start, and occupies it until end. Events must be
// placed in the order of their starts. There may be a million that overlap.
func (r *Rows) Place(start, end time.Duration) int {
	for len(r.busy) > 0 && r.busy[0].end <= start {
		heap.Push(&r.free, heap.Pop(&r.busy).(occupied).row)
	}
	row := len(r.busy)
	if len(r.free.IntSlice) > 0 {
		row = heap.Pop(&r.free).(int)
	}
	heap.Push(&r.busy, occupied{end, row})
	return row
}

// occupied is a row that is not free before end.
type occupied struct {
	end time.Duration
	row int
}

// earliest is a heap of occupied rows. The first one becomes free before the others.
type earliest []occupied

func (h earliest) Len() int           { return len(h) }
func (h earliest) Less(i, j int) bool { return h[i].end < h[j].end }
func (h earliest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *earliest) Push(x any)        { *h = append(*h, x.(occupied)) }
func (h *earliest) Pop() any          { return pop((*[]occupied)(h)) }

// lowest is a heap of the numbers of rows.
type lowest struct{ sort.IntSlice }

func (h *lowest) Push(x any) { h.IntSlice = append(h.IntSlice, x.(int)) }
func (h *lowest) Pop() any   { return pop((*[]int)(&h.IntSlice)) }

// pop removes the last element.
func pop[T any](s *[]T) T {
	last := len(*s) - 1
	x := (*s)[last]
	*s = (*s)[:last]
	return x
}
