package gputest_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/gputest"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// startCluster starts a parameter server without GPUs and two workers that share the GPUs of the
// process.
func startCluster(t *testing.T, opts ...server.Option) []*server.Server {
	t.Helper()
	spec, listeners := cluster.Spec{"ps": {}, "worker": {}}, map[cluster.Task]net.Listener{}
	tasks := []cluster.Task{{Job: "ps"}, {Job: "worker"}, {Job: "worker", Index: 1}}
	for _, task := range tasks {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		spec[task.Job][task.Index], listeners[task] = l.Addr().String(), l
	}
	var out []*server.Server
	for _, task := range tasks {
		gpu := "host"
		if task.Job == "ps" {
			gpu = "off"
		}
		s, err := server.New(cluster.ServerDef{Cluster: spec, Job: task.Job, Task: task.Index},
			append(opts, server.WithListener(listeners[task]), server.WithHTTP("127.0.0.1:0"), server.WithGPU(gpu))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Error(err)
			}
		})
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// workerGPUs are the GPUs of the workers.
var workerGPUs = []string{
	"/job:worker/task:0/device:GPU:0", "/job:worker/task:0/device:GPU:1", "/job:worker/task:1/device:GPU:0", "/job:worker/task:1/device:GPU:1",
}

// TestClusterOfGPUs trains with a tower on each GPU of two workers and the variables on a parameter
// server, and checks what the tasks report about their devices.
func TestClusterOfGPUs(t *testing.T) {
	servers := startCluster(t)
	want := trainOn(t, 10, "/cpu:0", "/cpu:0", "/cpu:0", "/cpu:0")
	got := trainAt(t, servers[1].Target(), "/job:ps/task:0/cpu:0", 10, workerGPUs...)
	compareLosses(t, got, want)
	tasks, err := weft.ClusterStatus(t.Context(), servers[0].Target())
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if strings.Contains(task.Name, "ps") {
			if len(task.GPUs) != 0 {
				t.Errorf("the parameter server has %+v", task.GPUs)
			}
			continue
		}
		if len(task.GPUs) != 2 {
			t.Errorf("%s has %+v", task.Name, task.GPUs)
		}
		for i, g := range task.GPUs {
			if g.Device != fmt.Sprintf("%s/device:GPU:%d", task.Name, i) || !strings.HasPrefix(g.Description, fmt.Sprintf("device: %d, name: %s", i, gpuName)) ||
				g.Peak == 0 || g.Limit == 0 || g.Reserved == 0 || g.Kernels < 100 || g.KernelTime <= 0 || g.Copies == 0 || g.CopiedBytes == 0 {
				t.Errorf("got %+v", g)
			}
		}
	}
	checkMetrics(t, servers[1])
}

// gpuName begins the names of the GPUs.
var gpuName = map[string]string{"": "software"}[gputest.Hardware]

// checkMetrics checks the metrics of a task with GPUs.
func checkMetrics(t *testing.T, s *server.Server) {
	t.Helper()
	page := metricsOf(t, s)
	const device = `device="/job:worker/replica:0/task:0/device:GPU:1"`
	for _, metric := range []string{
		`weft_gpu_memory_bytes{` + device + `,kind="peak"} `, `weft_gpu_kernels_total{` + device + `} `, `weft_gpu_kernel_seconds_total{` + device + `} `,
		`weft_gpu_copies_total{` + device + `,direction="to_device"} `, `weft_gpu_copied_bytes_total{` + device + `,direction="to_host"} `,
	} {
		_, value, found := strings.Cut(page, "\n"+metric)
		if value, _, _ = strings.Cut(value, "\n"); !found || value == "0" {
			t.Errorf("%s is %q", metric, value)
		}
	}
}

func metricsOf(t *testing.T, s *server.Server) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.HTTPURL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestAllReduce adds the tensors of both GPUs of a task, and of all GPUs of two tasks.
func TestAllReduce(t *testing.T) {
	servers := startCluster(t)
	config, err := proto.Marshal(&pb.ConfigProto{
		Experimental: &pb.ConfigProto_Experimental{CollectiveGroupLeader: "/job:worker/replica:0/task:0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, devices := range [][]string{workerGPUs[:2], workerGPUs} {
		s := op.NewScope()
		var sums []op.Output
		want := float32(0)
		for i, d := range devices {
			on, x := s.WithDevice(d), float32(int(1)<<i)
			want += x
			group := func(v int) op.Output { return op.Const(on, int32(v)) } //nolint:gosec // small
			product := op.Mul(on, op.Const(on, []float32{x, 2 * x}), op.Const(on, float32(3)))
			sums = append(sums, op.CollectiveReduceV2(on, product, group(len(devices)), group(len(devices)), group(1), nil, "Add", "Id"))
		}
		session := openAt(t, servers[1].Target(), s, weft.WithConfig(config))
		for range 3 {
			out, err := session.Run(t.Context(), nil, sums, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range out {
				if v := tensor.Values[float32](&out[i]); v[0] != 3*want || v[1] != 6*want {
					t.Errorf("%s has %v, want %v", devices[i], v, 3*want)
				}
			}
		}
	}
}
