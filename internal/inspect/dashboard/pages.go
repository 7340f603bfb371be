package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// logLines is the number of lines of each task that the page shows if it names none.
const logLines = 200

// The data of the pages about graphs, scalars and logs; app/src/api.ts has the same types.
type (
	logState struct {
		Lines   []lineState       `json:"lines"`
		Missing map[string]string `json:"missing"` // why a task has sent no lines
	}
	lineState struct {
		Time    int64       `json:"time"` // ms since 1970
		Level   string      `json:"level"`
		Message string      `json:"message"`
		Fields  [][2]string `json:"fields"`
	}
	graphState struct {
		Devices []string    `json:"devices"`
		Ops     []string    `json:"ops"`
		Nodes   []nodeState `json:"nodes"`
	}
	// nodeState is a list, because a graph has many: the name, the positions of the operation and
	// of the device, the positions of the inputs and of the control inputs.
	nodeState   [5]any
	seriesState struct {
		Task   string    `json:"task"`
		Tag    string    `json:"tag"`
		Times  []float64 `json:"times"` // s since 1970
		Steps  []int64   `json:"steps"` // -1 for an unknown step
		Values []any     `json:"values"`
	}
)

// ServeLog serves the last lines of the log of all tasks of at least a level.
func (d *Dashboard) ServeLog(w http.ResponseWriter, r *http.Request) {
	n := int64(logLines)
	if text := r.FormValue("lines"); text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 64); err != nil {
			fail(w, status.InvalidArgumentf("the number of lines %q: %w", text, err))
			return
		}
	}
	found, err := d.Cluster.GetLog(r.Context(), &pb.GetLogRequest{Cluster: true, Level: r.FormValue("level"), Lines: n})
	if err != nil {
		fail(w, err)
		return
	}
	out := logState{Lines: []lineState{}, Missing: map[string]string{}}
	for _, l := range found.GetLines() {
		line := lineState{l.GetTimeNanos() / 1e6, l.GetLevel(), l.GetMessage(), [][2]string{}}
		for _, f := range l.GetFields() {
			line.Fields = append(line.Fields, [2]string{f.GetName(), f.GetValue()})
		}
		out.Lines = append(out.Lines, line)
	}
	for task, why := range found.GetMissing() {
		out.Missing[cluster.ShortName(task)] = why
	}
	write(w, out)
}

// ServeGraph serves the placed graph of a session, which a request names by its master, such as
// "worker/0", and the first characters of its handle.
func (d *Dashboard) ServeGraph(w http.ResponseWriter, r *http.Request) {
	job, index, _ := strings.Cut(r.FormValue("task"), "/")
	i, err := strconv.Atoi(index)
	if err != nil {
		fail(w, status.InvalidArgumentf("the task %q: want JOB/INDEX", r.FormValue("task")))
		return
	}
	task := cluster.Task{Job: job, Index: i}
	found, err := d.Cluster.GetGraph(r.Context(), &pb.GetGraphRequest{Task: task.String(), Session: r.FormValue("session")})
	if err != nil {
		fail(w, err)
		return
	}
	out := graphState{Devices: list(found.GetDevices()), Ops: list(found.GetOps()), Nodes: make([]nodeState, len(found.GetNodes()))}
	for i, n := range found.GetNodes() {
		out.Nodes[i] = nodeState{n.GetName(), n.GetOp(), n.GetDevice(), list(n.GetInputs()), list(n.GetControls())}
	}
	write(w, out)
}

// ServeScalars serves the course of the numbers that summary operations have reported.
func (d *Dashboard) ServeScalars(w http.ResponseWriter, r *http.Request) {
	found, err := d.Cluster.GetScalars(r.Context(), &pb.GetScalarsRequest{Cluster: true})
	if err != nil {
		fail(w, err)
		return
	}
	out := []seriesState{}
	for _, s := range found.GetSeries() {
		series := seriesState{Task: cluster.ShortName(s.GetTask()), Tag: s.GetTag(), Times: []float64{}, Steps: list(s.GetSteps()), Values: []any{}}
		for _, t := range s.GetTimesNanos() {
			series.Times = append(series.Times, float64(t)/1e9)
		}
		for _, v := range s.GetValues() {
			series.Values = append(series.Values, number(v))
		}
		out = append(out, series)
	}
	slices.SortFunc(out, func(a, b seriesState) int { return cmp.Or(cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Task, b.Task)) })
	write(w, out)
}

// number returns a value for JSON, which has no NaN and infinity: nil for them.
func number(v float64) any {
	if v-v != 0 {
		return nil
	}
	return v
}

// list returns a list that is not null in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
