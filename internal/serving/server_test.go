package serving_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving"
	_ "github.com/weft-ml/weft/local"
)

// lookups is a model whose default signature returns x·[1, 2] + 0.5.
const lookups = "../../savedmodel/testdata/lookups"

// put copies a model to a version of base, which appears at once.
func put(t *testing.T, base string, version int) {
	t.Helper()
	tmp := filepath.Join(base, fmt.Sprintf("%d.part", version))
	if err := os.CopyFS(tmp, os.DirFS(lookups)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(base, fmt.Sprint(version))); err != nil {
		t.Fatal(err)
	}
}

// running is a server that runs during a test.
type running struct {
	t    *testing.T
	base string // folder of the model "m"
	url  string
	conn *grpc.ClientConn
	stop func() error
}

// start starts a server with versions of the model "m".
func start(t *testing.T, change func(*serving.Config), versions ...int) *running {
	t.Helper()
	base := t.TempDir()
	for _, v := range versions {
		put(t, base, v)
	}
	var listeners [2]net.Listener
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
	}
	config := serving.Config{
		GRPC: listeners[:1:1], HTTP: listeners[1:], Models: configOf(base, ""), FilePoll: 5 * time.Millisecond, LoadThreads: 1,
		WarmUp: true, RESTTimeout: time.Minute, MaxBody: 1 << 30, MetricsPath: "/metrics", EarlyLabels: true,
		Grace: 10 * time.Second, Name: "weft", Version: "1", Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := serving.New(config)
	go func() { done <- s.Run(ctx) }()
	conn, err := grpc.NewClient(listeners[0].Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, base: base, url: "http://" + listeners[1].Addr().String(), conn: conn}
	r.stop = sync.OnceValue(func() error {
		cancel()
		err := <-done
		conn.Close()
		return err
	})
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	r.until("the server is ready", func() bool {
		code, _ := r.get("/v2/health/ready")
		return code == http.StatusOK
	})
	return r
}

func configOf(base, policy string) *servingpb.ModelServerConfig {
	config, err := serving.ParseConfig([]byte(fmt.Sprintf(
		`model_config_list { config { name: "m" base_path: %q model_platform: "tensorflow" %s } }`, base, policy)))
	if err != nil {
		panic(err)
	}
	return config
}

// until waits for a condition that needs requests to check.
func (r *running) until(what string, is func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not after a minute", what)
		}
	}
}

func (r *running) get(path string) (int, string) {
	resp, err := http.Get(r.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

func (r *running) post(path, body string) (int, string) {
	resp, err := http.Post(r.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// compact returns JSON without white space.
func compact(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return b.String()
}

const row = `{"instances": [[1, 1], [0, 2]]}`

func TestREST(t *testing.T) {
	r := start(t, nil, 1)
	for _, tt := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/v1/models/m:predict", row, 200, `{"predictions":[[3.5],[4.5]]}`},
		{"/V1/models/m/versions/1:predict", `{"inputs": {"x": [[1, 1]]}}`, 200, `{"outputs":[[3.5]]}`},
		{"/v1/models/m:predict", `{"signature_name": "words", "instances": ["b", "c"]}`, 200, `{"predictions":[1,-1]}`},
		{"/v1/models/m:predict", `{"signature_name": "none", "instances": ["b"]}`, 400, `{"error":"Serving signature name: \"none\" not found in signature def"}`},
		{"/v1/models/m/versions/2:predict", row, 404, `{"error":"Servable not found for request: Specific(m, 2)"}`},
		{"/v1/models/n:predict", row, 404, `{"error":"Servable not found for request: Latest(n)"}`},
		{"/v1/models/m/labels/l:predict", row, 400, `{"error":"Unrecognized servable version label: l"}`},
		{"/v1/models/m:PREDICT", row, 400, `{"error":"Malformed request: POST /v1/models/m:PREDICT"}`},
		{"/v1/models/m:predict", `{}`, 400, `{"error":"Missing 'inputs' or 'instances' key"}`},
		{"/v2/models/m/infer", `{"id": "7", "inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 1]}]}`, 200,
			`{"model_name":"m","model_version":"1","id":"7","outputs":[{"name":"y","datatype":"FP32","shape":[1,1],"data":[3.5]}]}`},
		{"/v2/models/m/infer", `{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1]}]}`, 400,
			`{"error":"input 'x' of shape [1,2] has 1 elements, want 2"}`},
		{"/v2/models/m/infer", `{"id": {}, "inputs": []}`, 400, `{"error":"the id of a request must be a string"}`},
		{"/v2/models/m/infer", `{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 1]}], "id": 3}`, 400,
			`{"error":"the id of a request must be a string"}`},
	} {
		code, body := r.post(tt.path, tt.body)
		if got := compact(t, body); code != tt.code || got != tt.want {
			t.Errorf("%s %s: got %d %s, want %d %s", tt.path, tt.body, code, got, tt.code, tt.want)
		}
	}
	_, status := r.get("/v1/models/m")
	if got, want := compact(t, status), `{"model_version_status":[{"version":"1","state":"AVAILABLE","status":{"error_code":"OK","error_message":""}}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if code, body := r.get("/v1/models/m/metadata"); code != 200 || !strings.Contains(body, `"method_name"`) {
		t.Errorf("got %d %s", code, body)
	}
	if _, body := r.get("/metrics"); !strings.Contains(body, `:tensorflow:serving:request_count{model_name="m",status="OK"} 4`) {
		t.Errorf("the metrics are %s", body)
	}
}

func predictRequest(version int64) *servingpb.PredictRequest {
	q := &servingpb.PredictRequest{
		ModelSpec: &servingpb.ModelSpec{Name: "m"},
		Inputs: map[string]*pb.TensorProto{"x": {
			Dtype: pb.DataType_DT_FLOAT, FloatVal: []float32{1, 1},
			TensorShape: &pb.TensorShapeProto{Dim: []*pb.TensorShapeProto_Dim{{Size: 1}, {Size: 2}}},
		}},
	}
	if version > 0 {
		q.ModelSpec.VersionChoice = &servingpb.ModelSpec_Version{Version: wrapperspb.Int64(version)}
	}
	return q
}

func (r *running) predict(q *servingpb.PredictRequest) (*servingpb.PredictResponse, error) {
	out := &servingpb.PredictResponse{}
	return out, r.conn.Invoke(context.Background(), "/tensorflow.serving.PredictionService/Predict", q, out)
}

func TestGRPC(t *testing.T) {
	r := start(t, nil, 1)
	out, err := r.predict(predictRequest(0))
	if err != nil || out.GetOutputs()["y"].GetFloatVal()[0] != 3.5 || out.GetModelSpec().GetVersion().GetValue() != 1 {
		t.Errorf("got %v, %v", out, err)
	}
	wrong := predictRequest(0)
	wrong.Inputs["q"] = wrong.Inputs["x"]
	_, err = r.predict(wrong)
	want := "input size does not match signature: 2!=1 len({q,x}) != len({x}). Sent extra: {q}. Missing but required: {}."
	if s := grpcstatus.Convert(err); s.Code() != codes.InvalidArgument || s.Message() != want {
		t.Errorf("got %v", err)
	}
	if _, err := r.predict(predictRequest(9)); grpcstatus.Code(err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
}

// available waits until the versions of model m that can be used are the wanted ones, separated by
// spaces.
func (r *running) available(want string) {
	r.until("version "+want, func() bool {
		_, body := r.get("/v1/models/m")
		var list struct {
			Status []struct{ Version, State string } `json:"model_version_status"`
		}
		if json.Unmarshal([]byte(body), &list) != nil {
			return false
		}
		var got []string
		for _, s := range list.Status {
			if s.State == "AVAILABLE" {
				got = append(got, s.Version)
			}
		}
		return strings.Join(got, " ") == want
	})
}

// Versions come and go while clients send requests. No request fails.
func TestVersionsUnderLoad(t *testing.T) {
	r := start(t, nil, 1)
	var stop atomic.Bool
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for !stop.Load() {
				if i%2 == 0 {
					if out, err := r.predict(predictRequest(0)); err != nil || out.GetOutputs()["y"].GetFloatVal()[0] != 3.5 {
						t.Errorf("got %v, %v", out, err)
						return
					}
				} else if code, body := r.post("/v1/models/m:predict", row); code != 200 {
					t.Errorf("got %d %s", code, body)
					return
				}
			}
		})
	}
	put(t, r.base, 2)
	r.available("2")
	put(t, r.base, 3)
	r.available("3")
	if err := os.Rename(filepath.Join(r.base, "3"), filepath.Join(r.base, "gone")); err != nil {
		t.Fatal(err)
	}
	r.available("2")
	stop.Store(true)
	clients.Wait()
}

func (r *running) reload(config *servingpb.ModelServerConfig) error {
	return r.conn.Invoke(context.Background(), "/tensorflow.serving.ModelService/HandleReloadConfigRequest",
		&servingpb.ReloadConfigRequest{Config: config}, &servingpb.ReloadConfigResponse{})
}

func TestReload(t *testing.T) {
	r := start(t, nil, 1, 2)
	all := `model_version_policy { all {} } version_labels { key: "old" value: 1 }`
	if err := r.reload(configOf(r.base, all)); err != nil {
		t.Fatal(err)
	}
	r.until("label", func() bool {
		code, _ := r.post("/v1/models/m/labels/old:predict", row)
		return code == http.StatusOK
	})
	for want, config := range map[string]*servingpb.ModelServerConfig{
		"Request to assign label to version 9 of model m, which is not currently available for inference":                configOf(r.base, strings.Replace(all, "value: 1", "value: 9", 1)),
		"Expected model m to have an absolute path or URI; got base_path()=rel":                                          configOf("rel", ""),
		"ServerModelConfig type not supported by HandleReloadConfigRequest. Only ModelConfigList is currently supported": {},
	} {
		if s := grpcstatus.Convert(r.reload(config)); s.Message() != want {
			t.Errorf("got %v, want %s", s, want)
		}
	}
	if code, body := r.post("/v1/models/m/labels/old:predict", row); code != http.StatusOK {
		t.Errorf("a refused configuration has changed the labels: %d %s", code, body)
	}
	empty := &servingpb.ModelServerConfig{Config: &servingpb.ModelServerConfig_ModelConfigList{ModelConfigList: &servingpb.ModelConfigList{}}}
	if err := r.reload(empty); err != nil {
		t.Fatal(err)
	}
	if code, _ := r.post("/v1/models/m:predict", row); code != http.StatusNotFound {
		t.Errorf("a removed model answers with %d", code)
	}
}

// writeBroken writes a version that cannot be loaded.
func writeBroken(t *testing.T, base string, version int) {
	t.Helper()
	dir := filepath.Join(base, fmt.Sprint(version))
	if err := os.MkdirAll(dir+".part", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir+".part", "saved_model.pb"), []byte("\xff\xff"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".part", dir); err != nil {
		t.Fatal(err)
	}
}

func contains(text, part string) bool { return strings.Contains(text, part) }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A broken version does not take the place of a good one.
func TestBrokenVersion(t *testing.T) {
	r := start(t, nil, 1)
	writeBroken(t, r.base, 2)
	r.until("version 2 has failed", func() bool {
		_, body := r.get("/v1/models/m/versions/2")
		return strings.Contains(body, `"END"`)
	})
	if code, body := r.post("/v1/models/m:predict", row); code != http.StatusOK {
		t.Errorf("got %d %s", code, body)
	}
}

func TestBatching(t *testing.T) {
	batching, err := serving.ParseBatching([]byte("max_batch_size { value: 8 } batch_timeout_micros { value: 2000 } num_batch_threads { value: 2 } max_enqueued_batches { value: 1000 } allowed_batch_sizes: [4, 8]"))
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, func(c *serving.Config) { c.Servable.Batching = batching }, 1)
	var clients sync.WaitGroup
	for i := range 16 {
		clients.Go(func() {
			for k := range 10 {
				x := float32(i*100 + k)
				code, body := r.post("/v1/models/m:predict", fmt.Sprintf(`{"instances": [[%g, 0]]}`, x))
				if want := fmt.Sprintf(`{"predictions":[[%.1f]]}`, x+0.5); code != 200 || compact(t, body) != want {
					t.Errorf("got %d %s, want %s", code, body, want)
				}
			}
		})
	}
	clients.Wait()
	if code, body := r.post("/v1/models/m:predict", `{"instances": [[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1],[1,1]]}`); code != 400 {
		t.Errorf("a request of 9 rows: got %d %s", code, body)
	}
}
