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
	train, _ := newProgram(t, tasks[worker0])
	repeat(t, train)
	b := open(t, tasks[ps0].HTTPURL()+"/dashboard/", 1920, 1000)
	b.expect("3 tasks, seen by ps/0", "worker/1", "Session ", "1 (351.6 KiB)")
	for _, theme := range []string{"light", "dark"} {
		b.theme(theme)
		b.expect("3 tasks, seen by ps/0", "Session ")
		b.expectAccessible("overview, " + theme)
		b.screenshot("overview-" + theme)
	}
	b.run(chromedp.Focus(`nav a[href="#/resources"]`, chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	b.expect("hidden/weights", "[300,300]", "float")
	b.expectAccessible("resources")
	b.screenshot("resources")
	b.run(chromedp.SendKeys("input[type=search]", "outp", chromedp.ByQuery))
	b.run(chromedp.Poll(`!document.body.innerText.includes("hidden/weights")`, nil))

	b.run(chromedp.Focus(`nav a[href="#/timeline"]`, chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	b.run(chromedp.Focus("form button[type=submit]", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	b.expect("critical path of the slowest step", "MatMul", "ps/0 → worker/0")
	b.run(chromedp.Focus("canvas", chromedp.ByQuery), chromedp.KeyEvent("+++"), chromedp.KeyEvent(kb.ArrowRight), chromedp.Sleep(300*time.Millisecond))
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
	b.run(chromedp.EmulateViewport(360, 740), chromedp.Sleep(300*time.Millisecond))
	b.expectNoOverflow("timeline")
	for _, page := range []string{"", "resources"} {
		b.run(chromedp.Navigate(tasks[ps0].HTTPURL() + "/dashboard/#/" + page))
		b.expect("seen by ps/0")
		b.expectNoOverflow("page " + page)
		b.screenshot("narrow-" + page)
	}
	b.expectNoFaults()
}

// TestHang looks at a step that waits for an empty queue.
func TestHang(t *testing.T) {
	tasks := startCluster(t, map[string]int{"ps": 1, "worker": 1})
	_, hang := newProgram(t, tasks[worker0])
	repeat(t, hang)
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
		out.Tasks = append(out.Tasks, &pb.ClusterTask{Name: fmt.Sprintf("/job:ps/replica:0/task:%d", i), Address: "10.0.0.1:2222", Info: info})
	}
	return out, nil
}

// TestLargeCluster measures the time from the data to the page.
func TestLargeCluster(t *testing.T) {
	d := &dashboard.Dashboard{Cluster: large{}, Self: "ps/0"}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /dashboard/", d.ServeFiles)
	mux.HandleFunc("GET /dashboard/api/cluster", d.ServeCluster)
	s := httptest.NewServer(mux)
	defer s.Close()
	b := open(t, s.URL+"/dashboard/", 1200, 800)
	b.expect("100 tasks")
	var took float64
	b.run(chromedp.Evaluate(`(async () => {
		const start = performance.now();
		location.hash = "#/resources";
		while (document.querySelectorAll("details").length < 100) await new Promise(requestAnimationFrame);
		return performance.now() - start;
	})()`, &took, awaitPromise))
	t.Logf("100 tasks with 20,000 variables are shown after %.0f ms", took)
	b.run(chromedp.Focus("details:last-of-type summary", chromedp.ByQuery), chromedp.KeyEvent(kb.Enter))
	b.expect("layer_99/weights_199")
	b.run(chromedp.SendKeys("input[type=search]", "layer_42/weights_7", chromedp.ByQuery))
	b.expect("layer_42/weights_77")
	b.expectAccessible("100 tasks")
	b.expectNoFaults()
}
