package train

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/status"
)

// ProfilerHook traces steps at intervals. It writes files "timeline-STEP.json" in Chrome's trace
// event format, which chrome://tracing and Perfetto display. One of SaveSteps and SaveEvery must be
// set.
type ProfilerHook struct {
	BaseHook
	Dir       string           // folder of the files
	SaveSteps int64            // global steps between traces; 0 for none
	SaveEvery time.Duration    // time between traces; 0 for none
	Now       func() time.Time // the clock; time.Now if nil

	step  *Variable
	due   trigger
	next  int64 // expected global step after the next step
	asked bool  // the current step is traced
}

// Begin implements [SessionRunHook].
func (h *ProfilerHook) Begin(s *op.Scope) (err error) {
	if h.SaveSteps == 0 && h.SaveEvery == 0 {
		return status.InvalidArgumentf("ProfilerHook: one of SaveSteps and SaveEvery must be given")
	}
	h.due = newTrigger(h.SaveSteps, h.SaveEvery, h.Now)
	h.step, err = globalStepOf(s, "ProfilerHook")
	return err
}

// BeforeRun implements [SessionRunHook]. The first step is not traced, since it also compiles the
// graph.
func (h *ProfilerHook) BeforeRun(context.Context, *RunContext) (RunArgs, error) {
	h.asked = h.next > 0 && h.due.due(h.next)
	return RunArgs{Fetches: []op.Output{h.step.Value}, Trace: h.asked}, nil
}

// AfterRun implements [SessionRunHook].
func (h *ProfilerHook) AfterRun(_ context.Context, _ *RunContext, values RunValues) error {
	at := stepValue(&values.Fetched[0]) + 1
	if h.next == 0 {
		h.due.fire(at)
	}
	h.next = at + 1
	if !h.asked {
		return nil
	}
	h.due.fire(at)
	trace, err := ChromeTrace(values.Metadata)
	if err != nil {
		return err
	}
	return fileio.Files{}.Write(filepath.Join(h.Dir, fmt.Sprintf("timeline-%d.json", at)), trace)
}

// traceEvent is an event in the trace event format. Times are in microseconds.
type traceEvent struct {
	Name  string            `json:"name"`
	Cat   string            `json:"cat,omitempty"`
	Phase string            `json:"ph"` // "X" for an event with a duration, "M" for metadata
	Pid   int               `json:"pid"`
	Tid   int               `json:"tid"`
	Start float64           `json:"ts,omitempty"`
	Took  float64           `json:"dur,omitempty"`
	Args  map[string]string `json:"args,omitempty"`
}

// ChromeTrace converts the trace of a step to JSON in Chrome's trace event format. Each device is a
// process, with one thread for each of its nodes that ran at the same time.
func ChromeTrace(m *weft.Metadata) ([]byte, error) {
	nodes := m.Nodes()
	slices.SortStableFunc(nodes, func(a, b weft.NodeStats) int { return a.Start.Compare(b.Start) })
	var events []traceEvent
	devices, rows := map[string]int{}, map[string][]time.Time{}
	for _, n := range nodes {
		pid, known := devices[n.Device]
		if !known {
			pid = len(devices)
			devices[n.Device] = pid
			events = append(events, traceEvent{Name: "process_name", Phase: "M", Pid: pid, Args: map[string]string{"name": n.Device}})
		}
		row := slices.IndexFunc(rows[n.Device], func(end time.Time) bool { return !end.After(n.Start) })
		if row < 0 {
			row = len(rows[n.Device])
			rows[n.Device] = append(rows[n.Device], time.Time{})
		}
		rows[n.Device][row] = n.Start.Add(n.Took)
		events = append(events, traceEvent{
			Name: n.Node, Cat: "Op", Phase: "X", Pid: pid, Tid: row, Start: micros(n.Start.Sub(nodes[0].Start)), Took: micros(n.Took),
			Args: map[string]string{"name": n.Node, "op": n.Label},
		})
	}
	return json.Marshal(map[string]any{"traceEvents": events})
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
