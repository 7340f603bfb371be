package oip

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/jsontensor"
	"github.com/weft-ml/weft/internal/serving/predict"
	"github.com/weft-ml/weft/internal/serving/rest"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/internal/transport/httpbody"
	"github.com/weft-ml/weft/internal/transport/httpcode"
	"github.com/weft-ml/weft/status"
)

var modelPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^/v2/models/([^/]+)(?:/versions/([^/]+))?(?:/(ready|infer))?/?$`)
})

// headerLength is the header with the size of the JSON before the bytes of tensors.
const headerLength = "Inference-Header-Content-Length"

// IsPath reports whether a path belongs to the protocol.
func IsPath(path string) bool { return path == "/v2" || strings.HasPrefix(path, "/v2/") }

// answer is an answer over HTTP.
type answer struct {
	code     int
	body     []byte
	jsonSize int // size of the JSON before the bytes of tensors; 0 if there are none
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a, err := s.answer(r)
	if err != nil {
		a = answer{code: httpcode.Of(status.CodeOf(err)), body: rest.ErrorBody(err)}
	}
	head := w.Header()
	head.Set("Content-Type", "application/json")
	if a.jsonSize > 0 {
		head.Set("Content-Type", "application/octet-stream")
		head.Set(headerLength, strconv.Itoa(a.jsonSize))
	}
	head.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body) // the client has gone if that fails
}

func healthy(name string, is bool) answer {
	code := http.StatusOK
	if !is {
		code = http.StatusServiceUnavailable
	}
	return answer{code: code, body: []byte(`{"` + name + `": ` + strconv.FormatBool(is) + `}`)}
}

func (s *Server) answer(r *http.Request) (answer, error) {
	path := r.URL.EscapedPath()
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case get && (path == "/v2" || path == "/v2/"):
		return s.serverMetadata(), nil
	case get && path == "/v2/health/live":
		return healthy("live", true), nil
	case get && path == "/v2/health/ready":
		return healthy("ready", s.ready()), nil
	}
	m := modelPath().FindStringSubmatch(path)
	if m == nil {
		return answer{}, status.NotFoundf("there is no %s", path)
	}
	name, version, verb := m[1], m[2], m[3]
	if u, err := url.PathUnescape(name); err == nil {
		name = u
	}
	switch {
	case get && verb == "ready":
		ready, err := s.modelReady(name, version)
		if err != nil {
			return answer{}, err
		}
		a := healthy("ready", ready)
		a.body = append(jsontensor.AppendString([]byte(`{"name": `), name), `, "ready": `+strconv.FormatBool(ready)+`}`...)
		return a, nil
	case get && verb == "":
		return s.modelMetadata(name, version)
	case r.Method == http.MethodPost && verb == "infer":
		return s.inferHTTP(r, name, version)
	}
	return answer{code: http.StatusMethodNotAllowed, body: rest.ErrorBody(status.Unimplementedf("%s is not a method of %s", r.Method, path))}, nil
}

func (s *Server) serverMetadata() answer {
	b, _ := protojson.MarshalOptions{}.Marshal(&servingpb.ServerMetadataResponse{Name: s.Name, Version: s.Version, Extensions: extensions()})
	return answer{code: http.StatusOK, body: b}
}

func (s *Server) modelMetadata(name, version string) (answer, error) {
	r, err := s.metadata(name, version)
	if err != nil {
		return answer{}, err
	}
	b := jsontensor.AppendString([]byte(`{"name": `), name)
	b = append(b, `, "versions": [`...)
	for i, v := range r.GetVersions() {
		b = jsontensor.AppendString(appendComma(b, i), v)
	}
	b = append(b, `], "platform": "`+platform+`", "inputs": `...)
	b = append(appendTensors(b, r.GetInputs()), `, "outputs": `...)
	return answer{code: http.StatusOK, body: append(appendTensors(b, r.GetOutputs()), '}')}, nil
}

func appendComma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ", "...)
	}
	return b
}

func appendTensors(b []byte, list []*servingpb.ModelMetadataResponse_TensorMetadata) []byte {
	b = append(b, '[')
	for i, t := range list {
		b = jsontensor.AppendString(append(appendComma(b, i), `{"name": `...), t.GetName())
		b = append(b, `, "datatype": "`+t.GetDatatype()+`", "shape": `...)
		b = append(appendShape(b, t.GetShape()), '}')
	}
	return append(b, ']')
}

func appendShape(b []byte, shape []int64) []byte {
	b = append(b, '[')
	for i, d := range shape {
		b = strconv.AppendInt(appendComma(b, i), d, 10)
	}
	return append(b, ']')
}

// body returns the body of a request, decompressed.
func (s *Server) body(r *http.Request) ([]byte, error) {
	b, err := rest.ReadBody(r, s.MaxBody)
	if err != nil {
		return nil, err
	}
	var in io.Reader
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return b, nil
	case "gzip":
		in, err = gzip.NewReader(bytes.NewReader(b))
	case "deflate":
		in, err = zlib.NewReader(bytes.NewReader(b))
	default:
		return nil, status.InvalidArgumentf("Content-Encoding %q is not supported", encoding)
	}
	if err == nil {
		b, err = httpbody.Read(in, -1, s.MaxBody)
	}
	switch {
	case errors.Is(err, httpbody.ErrTooLarge):
		return nil, status.ResourceExhaustedf("the decompressed request is larger than the limit of %d bytes", s.MaxBody)
	case status.CodeOf(err) == status.ResourceExhausted:
		return nil, err
	case err != nil:
		return nil, status.InvalidArgumentf("the request cannot be decompressed: %w", err)
	}
	return b, nil
}

// inferHTTP answers an inference request.
func (s *Server) inferHTTP(r *http.Request, name, version string) (answer, error) {
	ctx := r.Context()
	if s.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Timeout)
		defer cancel()
	}
	body, err := s.body(r)
	if err != nil {
		return answer{}, err
	}
	size := len(body)
	if text := r.Header.Get(headerLength); text != "" {
		if size, err = strconv.Atoi(text); err != nil || size < 0 || size > len(body) {
			return answer{}, status.InvalidArgumentf("%s is %q, but the body has %d bytes", headerLength, text, len(body))
		}
		if size == 0 {
			return s.inferBytes(ctx, name, version, body)
		}
	}
	q, err := parse(body[:size], body[size:])
	if err != nil {
		return answer{}, err
	}
	defer servable.Release(q.inputs)
	q.model, q.version = name, version
	v, outs, release, err := s.infer(ctx, &q.request, predict.REST)
	if err != nil {
		return answer{}, err
	}
	defer release()
	return q.respond(v, outs)
}

// inferBytes answers a request without JSON: the body is the only input, and the answer has the
// bytes of all outputs.
func (s *Server) inferBytes(ctx context.Context, name, version string, body []byte) (answer, error) {
	held, sig, err := s.hold(name, version, "")
	if err != nil {
		return answer{}, err
	}
	defer held.Release()
	q, err := rawRequest(sig, body)
	if err != nil {
		return answer{}, err
	}
	defer servable.Release(q.inputs)
	q.model, q.version = name, version
	v, outs, release, err := s.infer(ctx, &q.request, predict.REST)
	if err != nil {
		return answer{}, err
	}
	defer release()
	return q.respond(v, outs)
}
