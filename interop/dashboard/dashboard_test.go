package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/inspect/dashboard"
	"github.com/weft-ml/weft/internal/proto/pb"
)

var (
	ps0     = cluster.Task{Job: "ps"}
	worker0 = cluster.Task{Job: "worker"}
	worker1 = cluster.Task{Job: "worker", Index: 1}
)

// TestTraining looks at a cluster that trains, records it, and goes through the pages by keyboard,
// in both colour schemes and on a narrow and a wide window.
func TestTraining(t *testing.T) {
	tasks := startCluster(t, map[string]int{"ps": 1, "worker": 2})
	repeat(t, newProgram(t, tasks[worker0]).train)
	b := open(t, tasks[ps0].HTTPURL()+"/dashboard/", 1920, 1000)
	b.expect("3 tasks, seen by ps/0", "worker/1", "Session ", "1 (351.6 KiB)")
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		b.expect("3 tasks, seen by ps/0", "Session ")
		b.expectAccessible("overview, " + theme)
		b.screenshot("overview-" + theme)
	}
	b.run(chromedp.Focus(`nav a[href="#/resources"]`, chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
	b.expect("hidden/weights", "[300,300]", "float")
	b.expectAccessible("resources")
	b.screenshot("resources")
	b.run(chromedp.SendKeys("input[type=search]", "outp", chromedp.ByQuery))
	b.run(chromedp.Poll(`!document.body.innerText.includes("hidden/weights")`, nil))

	b.run(chromedp.Focus(`nav a[href="#/timeline"]`, chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
	b.run(chromedp.Focus("form button[type=submit]", chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
	b.expect("critical path of the slowest step", "MatMul", "ps/0 → worker/0")
	b.run(chromedp.Focus("canvas", chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent("+++"), chromedp.KeyEvent(kb.ArrowRight), chromedp.Sleep(300*time.Millisecond))
	b.expectAccessible("timeline")
	b.screenshot("timeline")
	var colours int
	b.run(chromedp.Evaluate(`(() => {
		const c = document.querySelector("canvas");
		const data = new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer);
		return new Set(data).size;
	})()`, &colours))
	if colours < 10 {
		t.Errorf("the timeline has %d colours", colours)
	}
	graphPage(t, b)
	for _, theme := range []string{"dark", "light"} {
		b.theme(theme)
		b.run(chromedp.Focus(`nav a[href="#/scalars"]`, chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
		b.expect("worker/0: ")
		b.run(chromedp.Poll(`document.querySelector(".uplot canvas")?.width > 100`, nil), chromedp.Sleep(2500*time.Millisecond))
		b.expectAccessible("scalars, " + theme)
		b.screenshot("scalars-" + theme)
		b.run(chromedp.Focus(`nav a[href="#/log"]`, chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
		b.expect("created a session", "the task serves", "worker/1")
		b.expectAccessible("log, " + theme)
		b.screenshot("log-" + theme)
	}
	b.run(chromedp.SetValue("select", "error", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector("select").dispatchEvent(new Event("change", {bubbles: true}))`, nil))
	b.expect("No lines.")
	b.run(chromedp.EmulateViewport(360, 740), chromedp.Sleep(300*time.Millisecond))
	for _, page := range []string{"", "resources", "graph", "scalars", "log", "timeline"} {
		b.run(chromedp.Navigate(tasks[ps0].HTTPURL() + "/dashboard/#/" + page))
		b.expect("seen by ps/0")
		b.expectNoOverflow("page " + page)
		b.screenshot("narrow-" + page)
	}
	b.expectNoFaults()
}

// graphPage looks at the placed graph, by keyboard, with the colours of tasks and of the time in
// the recording that was made before.
func graphPage(t *testing.T, b *browser) {
	t.Helper()
	b.run(chromedp.Focus(`nav a[href="#/graph"]`, chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
	b.run(chromedp.WaitVisible(`[data-box="hidden"]`, chromedp.ByQuery))
	b.screenshot("graph-folded")
	b.run(chromedp.Focus(`[data-box="hidden"]`, chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
	b.run(chromedp.WaitVisible(`[data-box="hidden/MatMul"]`, chromedp.ByQuery))
	b.run(chromedp.SendKeys("input[type=search]", "scalarsum", chromedp.ByQuery))
	b.run(chromedp.Focus(`ul[aria-label="Found nodes"] button`, chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
	b.expect("ScalarSummary on /job:worker/replica:0/task:0/device:CPU:0", "Inputs (2)", "loss/Mean")
	b.expectAccessible("graph")
	b.screenshot("graph")
	b.run(chromedp.Focus("input[type=checkbox]", chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(" "))
	b.run(chromedp.WaitVisible(".heat", chromedp.ByQuery))
	b.screenshot("graph-time")
}

// TestFailures looks at a step that fails, and at its root cause.
func TestFailures(t *testing.T) {
	tasks := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	p := newProgram(t, tasks[worker0])
	for range 3 {
		if err := p.fail(t.Context()); err == nil {
			t.Fatal("the step does not fail")
		}
	}
	b := open(t, tasks[ps0].HTTPURL()+"/dashboard/", 1200, 800)
	b.expect("INVALID_ARGUMENT on ps/0", "the logarithm", "3 times", "at worker/0")
	b.expectAccessible("errors")
	b.screenshot("errors")
	b.expectNoFaults()
}

// TestHang looks at a step that waits for an empty queue.
func TestHang(t *testing.T) {
	tasks := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	repeat(t, newProgram(t, tasks[worker0]).hang)
	b := open(t, tasks[ps0].HTTPURL()+"/dashboard/", 1200, 800)
	b.expect("running for at least", "ps/0 at 127.0.0.1", "answers, unfinished")
	b.expectAccessible("a step that hangs")
	b.screenshot("hang")
	b.run(chromedp.Navigate(tasks[ps0].HTTPURL() + "/dashboard/#/resources"))
	b.expect("samples", "0 elements")
	b.expectNoFaults()
}

// TestDeadTask looks at a cluster that has just lost a worker.
func TestDeadTask(t *testing.T) {
	tasks := startCluster(t, map[string]int{"ps": 1, "worker": 2})
	b := open(t, tasks[ps0].HTTPURL()+"/dashboard/", 1200, 800)
	b.expect("3 tasks")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := tasks[worker1].Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	b.expect("no answer from worker/1", "silent", "connection refused")
	b.expectAccessible("a dead task")
	b.screenshot("dead")
	b.expectNoFaults()
}

// large is a cluster of 100 tasks, each with 200 variables.
type large struct{ dashboard.Cluster }

// GetCluster implements [dashboard.Cluster].
func (large) GetCluster(context.Context, *pb.GetClusterRequest) (*pb.ClusterInfo, error) {
	out := &pb.ClusterInfo{}
	for i := range 100 {
		info := &pb.TaskInfo{Version: "1", MemoryBytes: 1 << 30, UptimeSeconds: 3600}
		for j := range 200 {
			info.Resources = append(info.Resources, &pb.ResourceInfo{
				Kind: "variable", Name: fmt.Sprintf("layer_%d/weights_%d", i, j), Dtype: "float", Shape: "[1024,1024]", Bytes: 4 << 20,
			})
		}
		if i == 0 {
			info.Sessions = []*pb.SessionInfo{{Handle: "01234567", Nodes: 20_000}}
		}
		out.Tasks = append(out.Tasks, &pb.ClusterTask{Name: fmt.Sprintf("/job:ps/replica:0/task:%d", i), Address: "10.0.0.1:2222", Info: info})
	}
	return out, nil
}

// GetGraph implements [dashboard.Cluster]: 20,000 nodes, 4,000 of them in one scope without others.
func (large) GetGraph(context.Context, *pb.GetGraphRequest) (*pb.PlacedGraph, error) {
	out := &pb.PlacedGraph{Ops: []string{"Const", "MatMul", "Add"}}
	for i := range 100 {
		out.Devices = append(out.Devices, fmt.Sprintf("/job:ps/replica:0/task:%d/device:CPU:0", i))
	}
	for i := range 16_000 {
		n := &pb.PlacedNode{Name: fmt.Sprintf("tower_%d/layer_%d/cell_%d/node_%d", i/2000, i/100, i/10, i), Op: int32(i % 3), Device: int32(i / 160)}
		if i > 0 {
			n.Inputs = []int32{int32(i - 1), int32(i * 7 / 8)}
		}
		out.Nodes = append(out.Nodes, n)
	}
	for i := range 4_000 {
		out.Nodes = append(out.Nodes, &pb.PlacedNode{Name: fmt.Sprintf("save/node_%d", i), Op: int32(i % 3), Inputs: []int32{int32(4 * i)}, Controls: []int32{0}})
	}
	return out, nil
}

// TestLargeGraph measures the time from the data of a graph of 20,000 nodes to the drawing, and
// that of its actions.
func TestLargeGraph(t *testing.T) {
	b := open(t, serveLarge(t)+"/dashboard/#/graph", 1200, 800)
	b.run(chromedp.WaitVisible(`[data-box="tower_0"]`, chromedp.ByQuery))
	act := func(what, do, until string, limit float64) {
		t.Helper()
		var took float64
		b.run(chromedp.Evaluate(fmt.Sprintf(`(async () => {
			const start = performance.now();
			%s
			while (!document.querySelector(%q)) await new Promise(requestAnimationFrame);
			return performance.now() - start;
		})()`, do, until), &took, awaitPromise))
		t.Logf("%s takes %.0f ms", what, took)
		if took > limit {
			t.Errorf("%s takes %.0f ms, more than %.0f", what, took, limit)
		}
	}
	click := func(selector string) string {
		return fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new MouseEvent("click", {bubbles: true}));`, selector)
	}
	b.run(chromedp.Evaluate(`document.querySelectorAll("button").forEach(b => b.textContent === "Load again" && (b.id = "again"))`, nil))
	act("loading", click("#again")+`while (document.querySelector(".graph")) await new Promise(requestAnimationFrame);`, `[data-box="tower_0"]`, 3000)
	act("a scope", click(`[data-box="tower_0"]`), `[data-box="tower_0/layer_0"]`, 2000)
	act("a scope of 4,000 nodes", click(`[data-box="save"]`), `[data-box="save:MatMul"]`, 2000)
	b.run(chromedp.SendKeys("input[type=search]", "node_15999", chromedp.ByQuery))
	b.expect("tower_7/layer_159/cell_1599/node_15999")
	act("a search", click(`ul[aria-label="Found nodes"] button`), `[data-box="tower_7/layer_159/cell_1599/node_15999"]`, 2000)
	b.expectAccessible("a large graph")
	b.screenshot("graph-large")
	b.expectNoFaults()
}

// serveLarge serves the dashboard of a large cluster and returns its URL.
func serveLarge(t *testing.T) string {
	d := &dashboard.Dashboard{Cluster: large{}, Self: "ps/0"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /dashboard/", d.ServeFiles)
	mux.HandleFunc("GET /dashboard/api/cluster", d.ServeCluster)
	mux.HandleFunc("GET /dashboard/api/graph", d.ServeGraph)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

// TestLargeCluster measures the time from the data to the page.
func TestLargeCluster(t *testing.T) {
	b := open(t, serveLarge(t)+"/dashboard/", 1200, 800)
	b.expect("100 tasks")
	var took float64
	b.run(chromedp.Evaluate(`(async () => {
		const start = performance.now();
		location.hash = "#/resources";
		while (document.querySelectorAll("details").length < 100) await new Promise(requestAnimationFrame);
		return performance.now() - start;
	})()`, &took, awaitPromise))
	t.Logf("100 tasks with 20,000 variables are shown after %.0f ms", took)
	b.run(chromedp.Focus("details:last-of-type summary", chromedp.ByQuery, chromedp.NodeVisible), chromedp.KeyEvent(kb.Enter))
	b.expect("layer_99/weights_199")
	b.run(chromedp.SendKeys("input[type=search]", "layer_42/weights_7", chromedp.ByQuery))
	b.expect("layer_42/weights_77")
	b.expectAccessible("100 tasks")
	b.expectNoFaults()
}
