// Package httpapi serves MasterService as JSON over HTTP, below /v1/. It is described by OpenAPI at
// /v1/openapi.json, and a page for browsers at /v1/docs/ shows the description.
//
// One table has the paths, the types and the functions of all calls. The description is made of it
// when it is first asked for. Graphs, options and descriptions of tasks have the JSON form of their
// protocol buffers; tensors have one of their own. Errors are google.rpc.Status.
package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/httpbody"
	"github.com/weft-ml/weft/internal/transport/httpcode"
	"github.com/weft-ml/weft/internal/transport/openapi"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// Handler answers the requests below /v1/.
type Handler struct {
	Master    rpc.Master
	Inspector rpc.Inspection
	// Authorize returns the context of a call with its caller, or an error if the caller may not
	// make the call. path is that of the call over gRPC, or "" for the description.
	Authorize func(r *http.Request, path string) (context.Context, error)
	// RequestSize bounds a request, and GraphSize one with a graph, in bytes; 0 for no limit.
	RequestSize, GraphSize int64
	Quota                  *quota.Quota // limits of graphs; nil for the default ones
	Version                string       // of the program
	Log                    *slog.Logger

	once sync.Once
	ops  []operation // set by once
}

const (
	// decoding is the memory that a decoder takes for each byte of a body: a copy that doubles
	// while it grows, and the values.
	decoding = 4
	// listed is the memory for an element of a list, in bytes.
	listed = 24
	// object is the memory for a tensor that is given, in bytes.
	object = 160
)

// bodyTimeout bounds the time in which the body of a request must arrive.
const bodyTimeout = 10 * time.Minute

func (h *Handler) table() []operation {
	h.once.Do(func() { h.ops = operations() })
	return h.ops
}

// API returns the description of the API.
func (h *Handler) API() *openapi.API {
	a := &openapi.API{
		Title: "Weft", Version: h.Version, Error: Status{},
		Description: "Sessions of TensorFlow's distributed runtime over HTTP. Errors are google.rpc.Status with the codes and texts of the calls over gRPC.",
	}
	for _, o := range h.table() {
		a.Operations = append(a.Operations, o.Operation)
	}
	return a
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			h.Log.Error("panic in a handler", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			writeError(w, status.Internalf("panic while serving %s: %v", r.URL.Path, v))
		}
	}()
	path := r.URL.EscapedPath()
	if path == "/v1/openapi.json" || path == "/v1/docs" || strings.HasPrefix(path, "/v1/docs/") {
		h.describe(w, r, path)
		return
	}
	var allowed []string
	for i := range h.table() {
		o := &h.ops[i]
		params, ok := o.Match(path)
		if !ok {
			continue
		}
		if o.Method != r.Method && (o.Method != http.MethodGet || r.Method != http.MethodHead) {
			allowed = append(allowed, o.Method)
			continue
		}
		if err := h.serve(w, r, o, params); err != nil {
			writeError(w, err)
		}
		return
	}
	if allowed != nil {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		write(w, http.StatusMethodNotAllowed, statusOf(status.Unimplementedf("%s is not a method of %s", r.Method, path)))
		return
	}
	writeError(w, status.NotFoundf("there is no %s", path))
}

// Route returns the path of the call of a request, with names for what the client selects:
// "/v1/sessions/{session}". It is "" for other requests.
func (h *Handler) Route(r *http.Request) string {
	path := r.URL.EscapedPath()
	for i := range h.table() {
		if _, ok := h.ops[i].Match(path); ok {
			return h.ops[i].Path
		}
	}
	return ""
}

// describe serves the description and its page.
func (h *Handler) describe(w http.ResponseWriter, r *http.Request, path string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		write(w, http.StatusMethodNotAllowed, statusOf(status.Unimplementedf("%s is not a method of %s", r.Method, path)))
		return
	}
	if _, err := h.Authorize(r, ""); err != nil {
		writeError(w, err)
		return
	}
	switch path {
	case "/v1/docs":
		http.Redirect(w, r, "/v1/docs/", http.StatusMovedPermanently)
	case "/v1/openapi.json", "/v1/docs/openapi.json":
		b, err := h.API().Document()
		if err != nil {
			writeError(w, status.Internalf("%w", err))
			return
		}
		writeBytes(w, http.StatusOK, "application/json", b)
	default:
		if !openapi.ServePage(w, r, strings.TrimPrefix(path, "/v1/docs/")) {
			writeError(w, status.NotFoundf("there is no %s", path))
		}
	}
}

// serve makes a call. It returns an error that it has not written.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, o *operation, params map[string]string) error {
	ctx, err := h.Authorize(r, o.rpc)
	if err != nil {
		return err
	}
	c := &call{Context: ctx, master: h.Master, quota: h.Quota, inspector: h.Inspector, params: map[string]string{}}
	for name, v := range params {
		if c.params[name], err = url.PathUnescape(v); err != nil {
			return status.InvalidArgumentf("the path is not valid: %w", err)
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return status.InvalidArgumentf("the query is not valid: %w", err)
	}
	for _, p := range o.Parameters {
		if p.In == "query" {
			c.params[p.Name] = query.Get(p.Name)
		}
	}
	// The reader of http.Server ends when the body has been read, and has its own time limit.
	// it fails in tests, which have no connection
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	resp, err := o.serve(c, func(to any) error { return h.decode(r, o, c, to) })
	if err != nil {
		return err
	}
	if m, ok := resp.(proto.Message); ok {
		resp = wholeMessage{m}
	}
	b, err := json.Marshal(resp) // without the spaces that protojson adds at random
	switch {
	case status.CodeOf(err) == status.ResourceExhausted:
		return err
	case err != nil:
		return status.Internalf("the answer cannot be written as JSON: %w", err)
	}
	kind := "application/json"
	if c.out != nil {
		kind = openapi.Bytes
		w.Header().Set(openapi.JSONLength, strconv.Itoa(len(b)))
	}
	header := w.Header()
	header.Set("Content-Type", kind)
	header.Set("Content-Length", strconv.Itoa(len(b)+len(c.out)))
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write(b); err == nil {
		_, _ = w.Write(c.out) // the client may have gone
	}
	return nil
}

// decode reads the request.
func (h *Handler) decode(r *http.Request, o *operation, c *call, to any) error {
	limit := h.RequestSize
	if o.graph {
		limit = h.GraphSize
	}
	body, err := readBody(r, limit)
	if err != nil {
		return err
	}
	if text := r.Header.Get(openapi.JSONLength); text != "" && o.Binary {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > len(body) {
			return status.InvalidArgumentf("%s is %q, but the body has %d bytes", openapi.JSONLength, text, len(body))
		}
		body, c.tail = body[:n], body[n:]
	}
	needed := decoding*len(body) + listed*bytes.Count(body, []byte(","))
	if o.Binary { // not for graphs, whose messages are asked for on their own
		needed += object * bytes.Count(body, []byte("{"))
	}
	release := membudget.Hold(int64(needed))
	if release == nil {
		return status.ResourceExhaustedf("there is no memory for a request of %d bytes (--memory-limit)", len(body))
	}
	defer release()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		if status.CodeOf(err) == status.ResourceExhausted {
			return err
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("the body is empty")
		}
		return status.InvalidArgumentf("the request is not valid: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return status.InvalidArgumentf("the request is not valid: there is text after the JSON")
	}
	return nil
}

// readBody reads a body of at most limit bytes.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	body, err := httpbody.Read(r.Body, r.ContentLength, limit)
	switch {
	case errors.Is(err, httpbody.ErrTooLarge):
		return nil, status.ResourceExhaustedf("a request is larger than the limit of %d bytes (--max-request-size, --max-graph-size)", limit)
	case err != nil && status.CodeOf(err) != status.ResourceExhausted:
		return nil, status.Errorf(status.Cancelled, "the request is incomplete: %w", err)
	}
	return body, err
}

func statusOf(err error) *Status {
	e := status.From(err)
	return &Status{Code: int32(e.Code), Message: strings.ToValidUTF8(e.Message, "\uFFFD"), Details: []detail{}}
}

func writeError(w http.ResponseWriter, err error) {
	write(w, httpcode.Of(status.CodeOf(err)), statusOf(err))
}

func write(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		code, b = http.StatusInternalServerError, nil
	}
	writeBytes(w, code, "application/json", b)
}

func writeBytes(w http.ResponseWriter, code int, kind string, b []byte) {
	header := w.Header()
	header.Set("Content-Type", kind)
	header.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(code)
	_, _ = w.Write(b) // the client may have gone
}
