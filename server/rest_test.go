package server_test

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
	"github.com/weft-ml/weft/tensor"
)

// restClient makes calls over HTTP.
type restClient struct {
	t    *testing.T
	http *http.Client
	url  string
}

// call returns the status and the body of an answer.
func (c *restClient) call(method, path, body string) (code int, answer string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
		c.t.Errorf("%s %s: the answer is %s", method, path, kind)
	}
	return resp.StatusCode, string(b)
}

// must checks an answer, and returns one of its members as text.
func (c *restClient) must(method, path, body string, code int, want, member string) string {
	c.t.Helper()
	got, answer := c.call(method, path, body)
	if got != code || want != "" && answer != want {
		c.t.Errorf("%s %s %s: got %d %s, want %d %s", method, path, body, got, answer, code, want)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal([]byte(answer), &values); err != nil {
		c.t.Fatalf("%v: %s", err, answer)
	}
	return strings.Trim(string(values[member]), `"`)
}

const squareGraph = `{"node": [
	{"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}, "shape": {"shape": {"unknown_rank": true}}}},
	{"name": "y", "op": "Square", "input": ["x"], "attr": {"T": {"type": "DT_FLOAT"}}}]}`

func startREST(t *testing.T) *restClient {
	t.Helper()
	s := start1(t, server.WithHTTP("127.0.0.1:0"), server.WithREST())
	return &restClient{t, httpClient(t, nil), s.HTTPURL()}
}

// TestREST makes every call.
func TestREST(t *testing.T) {
	c := startREST(t)
	id := c.must("POST", "/v1/sessions", `{"graph_def": `+squareGraph+`}`, 200, "", "session")
	at := "/v1/sessions/" + id
	run := at + "/run"
	c.must("POST", run, `{"feeds": {"x:0": {"dtype": "float32", "values": [1, 3]}}, "fetches": ["y:0"]}`, 200,
		`{"tensors":{"y:0":{"dtype":"float32","shape":[2],"values":[1,9]}},"metadata":{}}`, "")
	c.must("POST", run, `{"feeds": {"x:0": {"dtype": "float32", "shape": [], "base64": "AAAAQA=="}}, "fetches": ["y:0"], "form": "base64"}`, 200,
		`{"tensors":{"y:0":{"dtype":"float32","shape":[],"base64":"AACAQA=="}},"metadata":{}}`, "")
	c.must("POST", run, `{"feeds": {"x:0": {"dtype": "float32", "values": 2}}, "targets": ["y"]}`, 200, `{"tensors":{},"metadata":{}}`, "")
	if meta := c.must("POST", run, `{"feeds": {"x:0": {"dtype": "float32", "values": 2}}, "fetches": ["y:0"], "options": {"trace_level": "FULL_TRACE"}}`, 200, "", "metadata"); !strings.Contains(meta, "step_stats") {
		t.Errorf("a traced step returns %s", meta)
	}

	part := c.must("POST", at+"/partial-runs", `{"feeds": ["x:0"], "fetches": ["y:0"]}`, 200, "", "partial_run_handle")
	c.must("POST", run, `{"partial_run_handle": "`+part+`", "feeds": {"x:0": {"dtype": "float32", "values": 5}}, "fetches": ["y:0"]}`, 200,
		`{"tensors":{"y:0":{"dtype":"float32","shape":[],"values":25}},"metadata":{}}`, "")

	handle := c.must("POST", at+"/callables", `{"options": {"feed": ["x:0"], "fetch": ["y:0"]}}`, 200, "", "handle")
	c.must("POST", at+"/callables/"+handle+"/run", `{"feeds": [{"dtype": "float32", "values": [[4]]}]}`, 200,
		`{"fetches":[{"dtype":"float32","shape":[1,1],"values":[[16]]}],"metadata":{}}`, "")
	c.must("DELETE", at+"/callables/"+handle, "", 200, "{}", "")
	c.must("POST", at+"/callables/"+handle+"/run", `{}`, 400, "", "")

	more, err := op.NewScope().Finalize()
	if err != nil {
		t.Fatal(err)
	}
	graph, err := pbconv.GraphToProto(more.Def())
	if err != nil {
		t.Fatal(err)
	}
	content, err := proto.Marshal(graph)
	if err != nil {
		t.Fatal(err)
	}
	c.must("POST", at+"/extend", `{"graph_def_base64": "`+base64.StdEncoding.EncodeToString(content)+`"}`, 200, "", "")
	c.must("POST", at+"/extend", `{"graph_def": {"node": [{"name": "z", "op": "Square", "input": ["y"], "attr": {"T": {"type": "DT_FLOAT"}}}]},
		"current_graph_version": 1}`, 200, `{"new_graph_version":2}`, "")
	c.must("POST", run, `{"feeds": {"x:0": {"dtype": "float32", "values": 2}}, "fetches": ["z:0"]}`, 200,
		`{"tensors":{"z:0":{"dtype":"float32","shape":[],"values":16}},"metadata":{}}`, "")

	for _, path := range []string{"/v1/devices", "/v1/devices?session=" + id, "/v1/server", "/v1/cluster"} {
		if code, body := c.call("GET", path, ""); code != 200 || !strings.Contains(body, "/job:worker/replica:0/task:0") {
			t.Errorf("%s: got %d %s", path, code, body)
		}
	}
	c.must("DELETE", at, "", 200, "{}", "")
	c.must("DELETE", at, "", 409, "", "")
	c.must("POST", "/v1/reset", "{}", 200, "{}", "")
}

// TestRESTErrors sends requests that fail, with TensorFlow's codes and texts.
func TestRESTErrors(t *testing.T) {
	c := startREST(t)
	id := c.must("POST", "/v1/sessions", `{"graph_def": `+squareGraph+`}`, 200, "", "session")
	run := "/v1/sessions/" + id + "/run"
	for _, tt := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", run, `{"fetches": ["z:0"]}`, 404, `{"code":5,"message":"FetchOutputs node z:0: not found","details":[]}`},
		{"POST", run, `{"fetches": ["y:0"]}`, 400, "You must feed a value for placeholder tensor"},
		{"POST", run, `{"fetches": ["y:0"], "more": 1}`, 400, `{"code":3,"message":"the request is not valid: json: unknown field \"more\"","details":[]}`},
		{"POST", run, ``, 400, "the body is empty"},
		{"POST", run, `{} {}`, 400, "there is text after the JSON"},
		{"POST", run, `{"form": "x"}`, 400, "form must be values, base64 or bytes"},
		{"POST", run, `{"feeds": {"x:0": null}}`, 400, "feed x:0: it is null"},
		{"POST", "/v1/sessions/none/run", `{}`, 409, `{"code":10,"message":"Session none is not found.","details":[]}`},
		{"POST", "/v1/sessions", `{"graph_def": {"node": [{"name": "a", "op": "None"}]}}`, 404, "Op type not registered 'None'"},
		{"POST", "/v1/sessions", `{"graph_def": {"nodes": []}}`, 400, "unknown field"},
		{"GET", "/v1/sessions", ``, 405, "GET is not a method of /v1/sessions"},
		{"GET", "/v1/none", ``, 404, "there is no /v1/none"},
		{"POST", "/v1/sessions//run", `{}`, 404, "there is no /v1/sessions//run"},
	} {
		if code, body := c.call(tt.method, tt.path, tt.body); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s %s: got %d %s, want %d %s", tt.method, tt.path, tt.body, code, body, tt.code, tt.want)
		}
	}
}

// TestRESTBytes sends and receives elements as bytes after the JSON.
func TestRESTBytes(t *testing.T) {
	c := startREST(t)
	id := c.must("POST", "/v1/sessions", `{"graph_def": `+squareGraph+`}`, 200, "", "session")
	text := `{"feeds": {"x:0": {"dtype": "float32", "shape": [3], "bytes": {"offset": 0, "size": 12}}}, "fetches": ["y:0"], "form": "bytes"}`
	in := tensor.Vector[float32](1, 2, 3)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.url+"/v1/sessions/"+id+"/run", bytes.NewReader(append([]byte(text), in.Bytes()...)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Json-Length", strconv.Itoa(len(text)))
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/octet-stream" {
		t.Fatalf("got %d %s, %v", resp.StatusCode, body, err)
	}
	n, err := strconv.Atoi(resp.Header.Get("Json-Length"))
	want := `{"tensors":{"y:0":{"dtype":"float32","shape":[3],"bytes":{"offset":0,"size":12}}},"metadata":{}}`
	squares := tensor.Vector[float32](1, 4, 9)
	if err != nil || string(body[:n]) != want || !bytes.Equal(body[n:], squares.Bytes()) {
		t.Errorf("got %q, %v", body, err)
	}
}

// TestRESTDescription requests the description and its page.
func TestRESTDescription(t *testing.T) {
	c := startREST(t)
	for path, want := range map[string]string{
		"/v1/openapi.json": `"openapi": "3.1.0"`, "/v1/docs/openapi.json": `"openapi": "3.1.0"`, "/v1/docs/": "swagger-ui-bundle.js",
		"/v1/docs": "swagger-ui-bundle.js", "/v1/docs/swagger-ui-bundle.js": "SwaggerUIBundle", "/v1/docs/swagger-ui.css": ".swagger-ui", "/": "/v1/docs/",
	} {
		if code, body := get(t, c.http, c.url+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: got %d and %d bytes", path, code, len(body))
		}
	}
	if code, _ := get(t, c.http, c.url+"/v1/docs/none"); code != http.StatusNotFound {
		t.Errorf("got %d", code)
	}
}

// TestRESTWithTLS makes calls with certificates: roles have the rights that they have over gRPC,
// and sessions belong to the clients that have created them.
func TestRESTWithTLS(t *testing.T) {
	a := newAuthority(t, "train")
	s := startSecure(t, a, 1, server.WithHTTP("127.0.0.1:0"), server.WithREST())[0]
	client := func(p *trust.Principal) *restClient {
		config := &tls.Config{InsecureSkipVerify: true}
		if p != nil {
			files := a.files(t, *p)
			pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
			if err != nil {
				t.Fatal(err)
			}
			config.Certificates = []tls.Certificate{pair}
		}
		return &restClient{t, httpClient(t, config), s.HTTPURL()}
	}
	alice, bob := client(&trust.Principal{Role: trust.Client, Tenant: "a", Name: "alice"}), client(&trust.Principal{Role: trust.Client, Tenant: "a", Name: "bob"})
	observer, anonymous := client(&trust.Principal{Role: trust.Observer, Name: "o"}), client(nil)
	create := `{"graph_def": ` + squareGraph + `}`
	id := alice.must("POST", "/v1/sessions", create, 200, "", "session")
	run := `{"feeds": {"x:0": {"dtype": "float32", "values": 3}}, "fetches": ["y:0"]}`
	alice.must("POST", "/v1/sessions/"+id+"/run", run, 200, "", "")
	for name, refused := range map[string]func() (int, string){
		"a step of another client":              func() (int, string) { return bob.call("POST", "/v1/sessions/"+id+"/run", run) },
		"the end by another client":             func() (int, string) { return bob.call("DELETE", "/v1/sessions/"+id, "") },
		"a session of an observer":              func() (int, string) { return observer.call("POST", "/v1/sessions", create) },
		"a session without a certificate":       func() (int, string) { return anonymous.call("POST", "/v1/sessions", create) },
		"the description without a certificate": func() (int, string) { return anonymous.call("GET", "/v1/openapi.json", "") },
		"the server for a client":               func() (int, string) { return alice.call("GET", "/v1/server", "") },
		"the devices of other people":           func() (int, string) { return bob.call("GET", "/v1/devices?session="+id, "") },
	} {
		if code, body := refused(); code != http.StatusForbidden && code != http.StatusConflict && !strings.Contains(body, "is not found") {
			t.Errorf("%s: got %d %s", name, code, body)
		}
	}
	observer.must("GET", "/v1/server", "", 200, "", "")
	alice.must("DELETE", "/v1/sessions/"+id, "", 200, "{}", "")
}

// TestRESTLimits sends more than a step or a graph may have.
func TestRESTLimits(t *testing.T) {
	c := startREST(t)
	id := c.must("POST", "/v1/sessions", `{"graph_def": `+squareGraph+`}`, 200, "", "session")
	for path, body := range map[string]string{
		"/v1/sessions/" + id + "/run": `{"targets": [` + strings.Repeat(`"y",`, 1_000_000) + `"y"]}`,
		"/v1/sessions":                `{"graph_def": {"node": [` + strings.Repeat("{},", 1_000_000) + `{}]}}`,
	} {
		if code, answer := c.call("POST", path, body); code != 429 || !strings.Contains(answer, "1000000") {
			t.Errorf("%s: got %d %s", path, code, answer)
		}
	}
}
