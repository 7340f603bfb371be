// Package dashboard shows a cluster in a browser: its tasks, sessions and running steps with what
// they wait for, recent errors, variables and queues, placed graphs, the course of scalar
// summaries, the log, and a timeline on request.
//
// The page is one file of JavaScript, compiled from the TypeScript in app/ by
// interop/dashboard/bundle ("make dashboard"). It asks the task that serves it for the state of the
// cluster, which the task collects as for "weft status".
package dashboard

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/timeline"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/httpcode"
	"github.com/weft-ml/weft/status"
)

const (
	// maxRecording is the longest time of a recording.
	maxRecording = time.Minute
	// traceMemory is about the memory of a record in a timeline, with its event and its text in the
	// trace and in the answer, in bytes.
	traceMemory = 2 << 10
	// requestSize bounds the request for a recording, in bytes.
	requestSize = 1 << 10
	// policy allows the files of the page, and nothing inline or of another origin.
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

//go:embed static
var static embed.FS

// Cluster is what the dashboard shows.
type Cluster interface {
	GetCluster(context.Context, *pb.GetClusterRequest) (*pb.ClusterInfo, error)
	RecordCluster(context.Context, *pb.RecordClusterRequest) (*pb.ClusterRecording, error)
	GetLog(context.Context, *pb.GetLogRequest) (*pb.Log, error)
	GetGraph(context.Context, *pb.GetGraphRequest) (*pb.PlacedGraph, error)
	GetScalars(context.Context, *pb.GetScalarsRequest) (*pb.Scalars, error)
}

// Dashboard serves the pages below /dashboard/.
type Dashboard struct {
	Cluster Cluster
	Self    string // "worker/0", the task that serves
}

// ServeFiles serves the files of the page.
func (d *Dashboard) ServeFiles(w http.ResponseWriter, r *http.Request) {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.StripPrefix("/dashboard/", http.FileServerFS(files)).ServeHTTP(w, r)
}

// ServeCluster serves the state of the cluster as JSON.
func (d *Dashboard) ServeCluster(w http.ResponseWriter, r *http.Request) {
	info, err := d.Cluster.GetCluster(r.Context(), &pb.GetClusterRequest{})
	if err != nil {
		fail(w, err)
		return
	}
	write(w, clusterOf(info, d.Self))
}

// recordRequest is the body of a request for a recording.
type recordRequest struct {
	Steps   int64   `json:"steps"`   // 0 for no limit
	Seconds float64 `json:"seconds"` // at most maxRecording
}

// recording is the response to it.
type recording struct {
	Summary string          `json:"summary"`
	Trace   json.RawMessage `json:"trace"`
}

// ServeRecording records the cluster.
func (d *Dashboard) ServeRecording(w http.ResponseWriter, r *http.Request) {
	var req recordRequest
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, requestSize))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&req); err != nil {
		fail(w, status.InvalidArgumentf("the request is not valid: %w", err))
		return
	}
	if req.Seconds <= 0 || req.Seconds > maxRecording.Seconds() || req.Steps < 0 {
		fail(w, status.InvalidArgumentf("a recording of %d steps and %v seconds: the time must be longer than 0 and at most %v, the number not negative",
			req.Steps, req.Seconds, maxRecording))
		return
	}
	// The limit of time of the request ends with its body. This fails in tests, which have no
	// connection.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	duration := time.Duration(req.Seconds * float64(time.Second))
	recorded, err := d.Cluster.RecordCluster(r.Context(), &pb.RecordClusterRequest{DurationNanos: duration.Nanoseconds(), Steps: req.Steps})
	if err != nil {
		fail(w, err)
		return
	}
	release := membudget.Hold(records(recorded) * traceMemory)
	if release == nil {
		fail(w, status.ResourceExhaustedf("There is not enough memory for the timeline of %d records (--memory-limit); a shorter recording has fewer.",
			records(recorded)))
		return
	}
	defer release()
	t := timeline.Build(recorded)
	var summary, trace bytes.Buffer
	if err := t.WriteSummary(&summary); err != nil {
		fail(w, err)
		return
	}
	if err := t.WriteTrace(&trace); err != nil {
		fail(w, err)
		return
	}
	write(w, recording{summary.String(), trace.Bytes()})
}

// records returns the number of records of all tasks.
func records(c *pb.ClusterRecording) int64 {
	n := 0
	for _, t := range c.GetTasks() {
		r := t.GetRecording()
		n += len(r.GetExecutions()) + len(r.GetTransfers()) + len(r.GetKernels()) + len(r.GetParts()) + len(r.GetSteps())
	}
	return int64(n)
}

// write answers with JSON.
func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

// fail answers with the text of an error.
func fail(w http.ResponseWriter, err error) {
	http.Error(w, status.From(err).Message, httpcode.Of(status.CodeOf(err)))
}
