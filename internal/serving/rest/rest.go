// Package rest is the REST API of TensorFlow Serving.
package rest

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/internal/serving/jsontensor"
	"github.com/weft-ml/weft/internal/serving/predict"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/httpbody"
	"github.com/weft-ml/weft/internal/transport/httpcode"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Handler answers the requests below /v1/.
type Handler struct {
	API     *predict.API
	Timeout time.Duration // of a request
	CORS    bool          // answers tell browsers that any origin may ask
	MaxBody int64         // size of the largest request, in bytes
}

// Forms of paths. They match without regard to case; the query belongs to the path. They are
// compiled at the first use, since most tasks serve no models.
var (
	postPath = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^/v1/models/([^/:]+)(?:(?:/versions/(\d+))|(?:/labels/([^/:]+)))?:(classify|regress|predict)$`)
	})
	getPath = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^/v1/models(?:/([^/:]+))?(?:(?:/versions/(\d+))|(?:/labels/([^/:]+)))?(?:/(metadata))?$`)
	})
)

// maxInflated is the size of the largest inflated body, in bytes.
const maxInflated = 100 << 20

// IsPath reports whether a path belongs to the REST API.
func IsPath(path string) bool { return len(path) >= 4 && strings.EqualFold(path[:4], "/v1/") }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Type", "application/json")
	if h.CORS {
		head.Set("Access-Control-Allow-Origin", "*")
		head.Set("Access-Control-Allow-Methods", "POST, GET")
		head.Set("Access-Control-Allow-Headers", "Content-Type")
	}
	if r.Method == http.MethodOptions {
		if origin := r.Header.Get("Origin"); !strings.Contains(origin, "http://") && !strings.Contains(origin, "https://") {
			w.WriteHeader(http.StatusBadRequest)
		}
		return
	}
	ctx := r.Context()
	if h.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.Timeout)
		defer cancel()
	}
	body, err := h.answer(ctx, r)
	code := http.StatusOK
	if err != nil {
		code, body = httpcode.Of(status.CodeOf(err)), ErrorBody(err)
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	_, _ = w.Write(body) // the client has gone if that fails
}

// ErrorBody returns the body of an answer with an error.
func ErrorBody(err error) []byte {
	b := append([]byte(nil), "{\n    \"error\": "...)
	return append(jsontensor.AppendString(b, status.From(err).Message), "\n}"...)
}

func (h *Handler) answer(ctx context.Context, r *http.Request) ([]byte, error) {
	path := r.RequestURI
	var m []string
	switch r.Method {
	case http.MethodPost:
		m = postPath().FindStringSubmatch(path)
	case http.MethodGet:
		m = getPath().FindStringSubmatch(path)
	}
	if m == nil || r.Method == http.MethodPost && m[4] != strings.ToLower(m[4]) {
		return nil, status.InvalidArgumentf("Malformed request: %s %s", r.Method, path)
	}
	spec, err := specOf(m)
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodGet {
		return h.get(ctx, spec, m[4] != "")
	}
	body, err := h.body(r)
	if err != nil {
		return nil, err
	}
	return h.post(ctx, spec, m[4], body)
}

// specOf returns the model that a path names.
func specOf(m []string) (*servingpb.ModelSpec, error) {
	spec := &servingpb.ModelSpec{Name: unescape(m[1])}
	switch {
	case m[2] != "":
		v, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil {
			return nil, status.InvalidArgumentf("Failed to convert version: %s to numeric.", m[2])
		}
		spec.VersionChoice = &servingpb.ModelSpec_Version{Version: wrapperspb.Int64(v)}
	case m[3] != "":
		spec.VersionChoice = &servingpb.ModelSpec_VersionLabel{VersionLabel: unescape(m[3])}
	}
	return spec, nil
}

func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// body returns the body of a request. One that cannot be inflated is empty.
func (h *Handler) body(r *http.Request) ([]byte, error) {
	b, err := ReadBody(r, h.MaxBody)
	if err != nil || !strings.Contains(r.Header.Get("Content-Encoding"), "gzip") {
		return b, err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	inflated, err := httpbody.Read(z, -1, maxInflated)
	if err != nil && status.CodeOf(err) != status.ResourceExhausted {
		return nil, nil //nolint:nilerr // see above
	}
	return inflated, err
}

// ReadBody returns the body of a request of at most limit bytes.
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	body, err := httpbody.Read(r.Body, r.ContentLength, limit)
	switch {
	case errors.Is(err, httpbody.ErrTooLarge) && r.ContentLength > limit:
		return nil, status.ResourceExhaustedf("a request of %d bytes is larger than the limit of %d bytes", r.ContentLength, limit)
	case errors.Is(err, httpbody.ErrTooLarge):
		return nil, status.ResourceExhaustedf("a request is larger than the limit of %d bytes", limit)
	case status.CodeOf(err) == status.ResourceExhausted:
		return nil, err
	case err != nil:
		return nil, status.Errorf(status.Cancelled, "the request is incomplete: %w", err)
	}
	return body, nil
}

// get answers a request for the status or the metadata of a model.
func (h *Handler) get(ctx context.Context, spec *servingpb.ModelSpec, metadata bool) ([]byte, error) {
	if spec.GetName() == "" {
		return nil, status.InvalidArgumentf("Missing model name in request.")
	}
	form := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true, Indent: " "}
	if !metadata {
		r, err := h.API.GetModelStatus(ctx, &servingpb.GetModelStatusRequest{ModelSpec: spec})
		if err != nil {
			return nil, err
		}
		return form.Marshal(r)
	}
	used, signatures, err := h.API.Signatures(spec)
	if err != nil {
		return nil, err
	}
	a, err := form.Marshal(signatures)
	if err != nil {
		return nil, status.Internalf("%w", err)
	}
	b := append([]byte(nil), "{\n\"model_spec\": {\"name\": "...)
	b = append(jsontensor.AppendString(b, used.GetName()), ", \"signature_name\": \"\", \"version\": \""...)
	b = append(strconv.AppendInt(b, used.GetVersion().GetValue(), 10), "\"},\n\"metadata\": {\"signature_def\": "...)
	return append(append(b, a...), "}\n}\n"...), nil
}

// post answers a request to run a model.
func (h *Handler) post(ctx context.Context, spec *servingpb.ModelSpec, verb string, body []byte) (out []byte, err error) {
	if verb == "predict" {
		defer h.API.Count(spec, "Predict", predict.REST, time.Now(), &err)
	}
	doc, err := jsondoc.Parse(body)
	if err != nil {
		return nil, err
	}
	if doc.Kind() != jsondoc.Object {
		return nil, status.InvalidArgumentf("JSON Value: %s Is not object", doc)
	}
	if name, ok := doc.Member("signature_name"); ok {
		if name.Kind() != jsondoc.String {
			return nil, status.InvalidArgumentf("JSON Value: %s not formatted correctly. 'signature_name' key must be a string value.", doc)
		}
		spec.SignatureName = name.Text()
	}
	if verb == "predict" {
		return h.predict(ctx, spec, doc)
	}
	in, err := jsontensor.Examples(doc, verb)
	if err != nil {
		return nil, err
	}
	if verb == "classify" {
		r, err := h.API.ClassifyFrom(ctx, &servingpb.ClassificationRequest{ModelSpec: spec, Input: in}, predict.REST)
		if err != nil {
			return nil, err
		}
		return classes(r.GetResult())
	}
	r, err := h.API.RegressFrom(ctx, &servingpb.RegressionRequest{ModelSpec: spec, Input: in}, predict.REST)
	if err != nil {
		return nil, err
	}
	return values(r.GetResult())
}

func (h *Handler) predict(ctx context.Context, spec *servingpb.ModelSpec, doc jsondoc.Value) ([]byte, error) {
	held, err := h.API.Models.Hold(spec)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	name := spec.GetSignatureName()
	if name == "" {
		name = savedmodel.DefaultSignature
	}
	sig, ok := held.Signature(name)
	if !ok {
		return nil, status.InvalidArgumentf("Serving signature name: \"%s\" not found in signature def", name)
	}
	inputs, rows, err := tensors(doc, sig)
	if err != nil {
		return nil, err
	}
	defer servable.Release(inputs)
	out, err := h.API.Run(ctx, spec.GetName(), sig, inputs, nil)
	if err != nil {
		return nil, err
	}
	defer servable.Release(out)
	if rows {
		return jsontensor.AppendPredictions(nil, out)
	}
	return jsontensor.AppendOutputs(nil, out)
}

// tensors returns the inputs of a request, and whether it has the row format.
func tensors(doc jsondoc.Value, sig *servable.Signature) (inputs map[string]tensor.Tensor, rows bool, err error) {
	instances, rows := doc.Member("instances")
	columns, columnar := doc.Member("inputs")
	if len(sig.Inputs) == 0 {
		return nil, rows, status.InvalidArgumentf("Failed to get input map for signature: %s", sig.Name)
	}
	switch {
	case rows && columnar:
		err = status.InvalidArgumentf("JSON Value: %s Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist ", doc)
	case columnar:
		inputs, err = jsontensor.Columns(columns, given(sig, columns))
	case !rows:
		err = status.InvalidArgumentf("Missing 'inputs' or 'instances' key")
	case instances.Kind() != jsondoc.Array:
		err = status.InvalidArgumentf("JSON Value: %s Expecting 'instances' to be an list/array", doc)
	case instances.Len() == 0:
		err = status.InvalidArgumentf("JSON Value: %s No values in 'instances' array", doc)
	default:
		inputs, err = jsontensor.Rows(instances, given(sig, instances.First()))
	}
	return inputs, rows, err
}

// given returns the inputs of a signature, without those that have a default value and that a value
// does not name.
func given(sig *servable.Signature, v jsondoc.Value) []serve.Argument {
	defaults := sig.Definition.GetDefaults()
	if len(defaults) == 0 {
		return sig.Inputs
	}
	var list []serve.Argument
	for _, in := range sig.Inputs {
		named := false
		if v.Kind() == jsondoc.Object && !jsontensor.IsBase64(v) {
			_, named = v.Member(in.Name)
		}
		if defaults[in.Name] == nil || named {
			list = append(list, in)
		}
	}
	if len(list) == 0 {
		return sig.Inputs
	}
	return list
}

const (
	// numberSize is the size of the text of a number of 32 bits and its list, in bytes.
	numberSize = 24
	// grown is how often a slice that grows with a text takes the memory of it.
	grown = 2
)

func errNoMemory(examples int) error {
	return status.ResourceExhaustedf("there is no memory for the text of the results of %d examples (--memory-limit)", examples)
}

func classes(r *servingpb.ClassificationResult) ([]byte, error) {
	size := int64(0)
	for _, row := range r.GetClassifications() {
		size += numberSize
		for _, c := range row.GetClasses() {
			size += numberSize + jsontensor.StringSize(string(c.GetLabel()))
		}
	}
	if !membudget.Take(grown * size) {
		return nil, errNoMemory(len(r.GetClassifications()))
	}
	b := append([]byte(nil), "{\n    \"results\": ["...)
	for i, row := range r.GetClassifications() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '[')
		for k, c := range row.GetClasses() {
			if k > 0 {
				b = append(b, ", "...)
			}
			b = append(jsontensor.AppendString(append(b, '['), string(c.GetLabel())), ", "...)
			b = append(jsontensor.AppendFloat(b, float64(c.GetScore()), 32), ']')
		}
		b = append(b, ']')
	}
	return append(b, "]\n}"...), nil
}

func values(r *servingpb.RegressionResult) ([]byte, error) {
	if n := len(r.GetRegressions()); !membudget.Take(grown * numberSize * int64(n)) {
		return nil, errNoMemory(n)
	}
	b := append([]byte(nil), "{\n    \"results\": ["...)
	for i, v := range r.GetRegressions() {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = jsontensor.AppendFloat(b, float64(v.GetValue()), 32)
	}
	return append(b, "]\n}"...), nil
}
