package train

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/format/chrometrace"
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
	return fileio.Files{}.Write(fileio.Join(h.Dir, fmt.Sprintf("timeline-%d.json", at)), trace)
}

// ChromeTrace converts the trace of a step to JSON in Chrome's trace event format. Each device is a
// process, with one thread for each of its nodes that ran at the same time.
func ChromeTrace(m *weft.Metadata) ([]byte, error) {
	nodes := m.Nodes()
	slices.SortStableFunc(nodes, func(a, b weft.NodeStats) int { return a.Start.Compare(b.Start) })
	var events []chrometrace.Event
	devices, rows := map[string]int{}, map[string]*chrometrace.Rows{}
	for _, n := range nodes {
		pid, known := devices[n.Device]
		if !known {
			pid = len(devices)
			devices[n.Device], rows[n.Device] = pid, &chrometrace.Rows{}
			events = append(events, chrometrace.Name(chrometrace.ProcessName, pid, 0, n.Device))
		}
		start := n.Start.Sub(nodes[0].Start)
		event := chrometrace.Span(n.Node, pid, rows[n.Device].Place(start, start+n.Took), start, n.Took)
		event.Category, event.Args = "Op", map[string]any{"name": n.Node, "op": n.Label}
		events = append(events, event)
	}
	var out bytes.Buffer
	err := chrometrace.Write(&out, events)
	return out.Bytes(), err
}
