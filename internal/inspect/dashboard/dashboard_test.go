package dashboard

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// fake is a cluster of two tasks.
type fake struct {
	err      error
	steps    int // of a recording
	recorded *pb.RecordClusterRequest
}

func (f *fake) GetCluster(context.Context, *pb.GetClusterRequest) (*pb.ClusterInfo, error) {
	step := &pb.StepInfo{Id: 1 << 60, Waits: []*pb.WaitInfo{{Task: "/job:ps/replica:0/task:1", Call: "RunGraph", Silent: "stopped"}}}
	return &pb.ClusterInfo{Tasks: []*pb.ClusterTask{
		{Name: "/job:ps/replica:0/task:0", Address: "a:1", Info: &pb.TaskInfo{
			Sessions: []*pb.SessionInfo{{Handle: "abc", Steps: []*pb.StepInfo{step}}},
			Gpus:     []*pb.GpuInfo{{Device: "/job:ps/replica:0/task:0/device:GPU:1", InUseBytes: 3, PeakBytes: 4, KernelSeconds: 0.5}},
		}},
		{Name: "/job:ps/replica:0/task:1", Error: "stopped"},
	}}, f.err
}

func (f *fake) RecordCluster(_ context.Context, req *pb.RecordClusterRequest) (*pb.ClusterRecording, error) {
	f.recorded = req
	task := &pb.RecordedTask{Name: "/job:ps/replica:0/task:0", Error: "busy"}
	if f.steps > 0 {
		task.Error, task.Recording = "", &pb.Recording{Steps: slices.Repeat([]*pb.RecordedStep{{Took: 1}}, f.steps)}
	}
	return &pb.ClusterRecording{Tasks: []*pb.RecordedTask{task}}, f.err
}

func (f *fake) GetLog(_ context.Context, req *pb.GetLogRequest) (*pb.Log, error) {
	line := &pb.LogLine{TimeNanos: 3e9, Level: "warn", Message: req.GetLevel(), Fields: []*pb.LogField{{Name: "peer", Value: "a"}}}
	return &pb.Log{Lines: []*pb.LogLine{line}, Missing: map[string]string{"/job:ps/replica:0/task:1": "stopped"}}, f.err
}

func (f *fake) GetGraph(_ context.Context, req *pb.GetGraphRequest) (*pb.PlacedGraph, error) {
	return &pb.PlacedGraph{Devices: []string{req.GetTask()}, Ops: []string{req.GetSession()}, Nodes: []*pb.PlacedNode{{Name: "a"}, {Name: "b", Inputs: []int32{0}}}}, f.err
}

func (f *fake) GetScalars(context.Context, *pb.GetScalarsRequest) (*pb.Scalars, error) {
	series := &pb.ScalarSeries{Task: "/job:ps/replica:0/task:1", Tag: "loss", TimesNanos: []int64{15e8, 2e9}, Steps: []int64{1, 2}, Values: []float64{0.5, math.NaN()}}
	return &pb.Scalars{Series: []*pb.ScalarSeries{series, {Task: "/job:ps/replica:0/task:0", Tag: "loss"}}}, f.err
}

func get(t *testing.T, h http.HandlerFunc, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
	return w
}

func TestFiles(t *testing.T) {
	d := &Dashboard{}
	for path, want := range map[string]string{"": "<!doctype html>", "app.js": "api/cluster", "app.css": "--surface", "icon.svg": "<svg"} {
		w := get(t, d.ServeFiles, "GET", "/dashboard/"+path, "")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%q: %d %s", path, w.Code, w.Body)
		}
		if csp := w.Header().Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "default-src 'none'") {
			t.Errorf("%q: the policy is %q", path, csp)
		}
	}
	page := get(t, d.ServeFiles, "GET", "/dashboard/", "").Body.String()
	for _, inline := range []string{"<style", "onclick", "javascript:", "</script><script>"} {
		if strings.Contains(page, inline) {
			t.Errorf("the page has %q", inline)
		}
	}
	if w := get(t, d.ServeFiles, "GET", "/dashboard/../secret", ""); w.Code == http.StatusOK {
		t.Errorf("a path outside of the folder: %d", w.Code)
	}
}

func TestCluster(t *testing.T) {
	f := &fake{}
	d := &Dashboard{Cluster: f, Self: "ps/0"}
	var out clusterState
	w := get(t, d.ServeCluster, "GET", "/dashboard/api/cluster", "")
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(w.Body.String(), "null") {
		t.Errorf("a list is null: %s", w.Body)
	}
	if len(out.Tasks) != 2 || out.Self != "ps/0" || out.Tasks[0].Name != "ps/0" || !out.Tasks[0].Weft || out.Tasks[1].Error != "stopped" {
		t.Fatalf("got %+v", out)
	}
	if st := out.Tasks[0].Sessions[0].Steps[0]; st.ID != "1152921504606846976" || st.Waits[0].Task != "ps/1" || st.Waits[0].Silent != "stopped" {
		t.Errorf("the step is %+v", st)
	}
	if g := out.Tasks[0].GPUs; len(g) != 1 || g[0].Device != "GPU:1" || g[0].InUse != 3 || g[0].Peak != 4 || g[0].KernelTime != 0.5 {
		t.Errorf("the GPUs are %+v", g)
	}
	f.err = status.Unavailablef("the task is shutting down")
	if w := get(t, d.ServeCluster, "GET", "/dashboard/api/cluster", ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "shutting down") {
		t.Errorf("an error: %d %s", w.Code, w.Body)
	}
}

// The data of the other pages.
func TestPages(t *testing.T) {
	f := &fake{}
	d := &Dashboard{Cluster: f, Self: "ps/0"}
	for _, tt := range []struct {
		handler http.HandlerFunc
		path    string
		code    int
		want    string
	}{
		{d.ServeLog, "log?level=info", 200, `{"lines":[{"time":3000,"level":"warn","message":"info","fields":[["peer","a"]]}],"missing":{"ps/1":"stopped"}}`},
		{d.ServeLog, "log?lines=x", 400, `the number of lines "x"`},
		{d.ServeGraph, "graph?task=ps/0&session=abc", 200, `{"devices":["/job:ps/replica:0/task:0"],"ops":["abc"],"nodes":[["a",0,0,[],[]],["b",0,0,[0],[]]]}`},
		{d.ServeGraph, "graph?task=ps&session=abc", 400, `the task "ps": want JOB/INDEX`},
		{d.ServeScalars, "scalars", 200, `[{"task":"ps/0","tag":"loss","times":[],"steps":[],"values":[]},` +
			`{"task":"ps/1","tag":"loss","times":[1.5,2],"steps":[1,2],"values":[0.5,null]}]`},
	} {
		w := get(t, tt.handler, "GET", "/dashboard/api/"+tt.path, "")
		if w.Code != tt.code || !strings.HasPrefix(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %s", tt.path, w.Code, w.Body)
		}
		f.err = status.Unavailablef("gone")
		if w := get(t, tt.handler, "GET", "/dashboard/api/"+tt.path, ""); tt.code == 200 && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %s", tt.path, w.Code, w.Body)
		}
		f.err = nil
	}
}

func TestRecording(t *testing.T) {
	f := &fake{}
	d := &Dashboard{Cluster: f}
	for _, bad := range []string{"", "x", `{"steps":-1,"seconds":1}`, `{"seconds":0}`, `{"seconds":61}`, `{"seconds":1,"more":2}`, strings.Repeat(" ", 2000) + "{}"} {
		if w := get(t, d.ServeRecording, "POST", "/", bad); w.Code != http.StatusBadRequest {
			t.Errorf("%.20q: %d %s", bad, w.Code, w.Body)
		}
	}
	if f.recorded != nil {
		t.Error("a request that is not valid has recorded the cluster")
	}
	w := get(t, d.ServeRecording, "POST", "/", `{"steps":3,"seconds":1.5}`)
	var out recording
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if f.recorded.GetSteps() != 3 || f.recorded.GetDurationNanos() != (1500*time.Millisecond).Nanoseconds() {
		t.Errorf("recorded %v", f.recorded)
	}
	if !strings.Contains(out.Summary, "ps/0 is not recorded: busy") || !strings.Contains(string(out.Trace), "traceEvents") {
		t.Errorf("got %s", w.Body)
	}
}

// The timeline of many records asks for its memory.
func TestMemoryOfRecording(t *testing.T) {
	d := &Dashboard{Cluster: &fake{steps: 1000}}
	if w := get(t, d.ServeRecording, "POST", "/", `{"seconds":1}`); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1)
	if w := get(t, d.ServeRecording, "POST", "/", `{"seconds":1}`); w.Code == http.StatusOK || !strings.Contains(w.Body.String(), "1000 records") {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
}
