package serving

import (
	"net/http"
	"strings"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/rest"
	"github.com/weft-ml/weft/internal/transport/openapi"
	"github.com/weft-ml/weft/status"
)

// Requests and answers as the description shows them. The handlers read them without these types,
// as they take more than JSON, such as bytes after it.
type (
	// PredictRequest has rows (instances) or columns (inputs).
	PredictRequest struct {
		Signature string `json:"signature_name,omitzero" doc:"serving_default if it is omitted."`
		Instances []any  `json:"instances,omitzero" doc:"One element for each example: the value of the only input, or an object with one value for each input."`
		Inputs    any    `json:"inputs,omitzero" doc:"The value of the only input, or an object with one for each input, with all examples."`
	}
	// PredictResult has the form of the request.
	PredictResult struct {
		Predictions []any `json:"predictions,omitzero" doc:"One element for each example, if the request has instances."`
		Outputs     any   `json:"outputs,omitzero" doc:"The value of the only output, or an object with one for each output, if the request has inputs."`
	}
	// ExamplesRequest is a list of tf.Example.
	ExamplesRequest struct {
		Signature string           `json:"signature_name,omitzero" doc:"serving_default if it is omitted."`
		Context   map[string]any   `json:"context,omitzero" doc:"Features of all examples."`
		Examples  []map[string]any `json:"examples" doc:"A value or a list of values for each feature."`
	}
	// ExamplesResult has one element for each example.
	ExamplesResult struct {
		Results []any `json:"results" doc:"A list of [label, score] for each example, or one value."`
	}
	// MetadataResult describes the signatures of a model.
	MetadataResult struct {
		Spec     map[string]any `json:"model_spec"`
		Metadata map[string]any `json:"metadata"`
	}
	// ServerDescription describes the server.
	ServerDescription struct {
		Name       string   `json:"name"`
		Version    string   `json:"version"`
		Extensions []string `json:"extensions"`
	}
	// ModelDescription describes a model.
	ModelDescription struct {
		Name     string              `json:"name"`
		Versions []string            `json:"versions"`
		Platform string              `json:"platform"`
		Inputs   []TensorDescription `json:"inputs"`
		Outputs  []TensorDescription `json:"outputs"`
	}
	// TensorDescription describes an input or output.
	TensorDescription struct {
		Name  string  `json:"name"`
		Type  string  `json:"datatype"`
		Shape []int64 `json:"shape" doc:"-1 is any size."`
	}
	// InferTensor is a tensor of the Open Inference Protocol.
	InferTensor struct {
		Name       string         `json:"name"`
		Shape      []int64        `json:"shape"`
		Type       string         `json:"datatype" enum:"BOOL,UINT8,UINT16,UINT32,UINT64,INT8,INT16,INT32,INT64,FP16,FP32,FP64,BYTES,BF16"`
		Parameters map[string]any `json:"parameters,omitzero" doc:"binary_data_size: number of bytes after the JSON that have the elements."`
		Data       []any          `json:"data,omitzero"`
	}
	// InferOutput asks for an output.
	InferOutput struct {
		Name       string         `json:"name"`
		Parameters map[string]any `json:"parameters,omitzero" doc:"binary_data: the elements are to be bytes after the JSON."`
	}
	// InferRequest is a request of the Open Inference Protocol.
	InferRequest struct {
		ID         string         `json:"id,omitzero"`
		Parameters map[string]any `json:"parameters,omitzero"`
		Inputs     []InferTensor  `json:"inputs"`
		Outputs    []InferOutput  `json:"outputs,omitzero" doc:"All outputs if it is omitted."`
	}
	// InferResult is an answer of the Open Inference Protocol.
	InferResult struct {
		Model   string        `json:"model_name"`
		Version string        `json:"model_version"`
		ID      string        `json:"id,omitzero"`
		Outputs []InferTensor `json:"outputs"`
	}
	// Live says whether the server lives.
	Live struct {
		Live bool `json:"live"`
	}
	// Ready says whether the server or a model is ready.
	Ready struct {
		Name  string `json:"name,omitzero"`
		Ready bool   `json:"ready"`
	}
	// Failure is the answer to a request that fails.
	Failure struct {
		Error string `json:"error"`
	}
)

// description returns the description of the server.
func description(version string) *openapi.API {
	a := &openapi.API{
		Title: "Weft model server", Version: version, Error: Failure{},
		Description: "The REST API of TensorFlow Serving, and version 2 of the Open Inference Protocol.",
	}
	model := openapi.Parameter{Name: "model", In: "path", Description: "Name of the model.", Pattern: "^[^/:]+$"}
	add := func(method, path, id, tag, summary string, req, resp any, codes ...int) {
		o := openapi.Operation{Method: method, Path: path, ID: id, Tag: tag, Summary: summary, Request: req, Response: resp, Codes: codes}
		for _, p := range []openapi.Parameter{
			model,
			{Name: "version", In: "path", Description: "A version of the model.", Pattern: "^[0-9]+$"},
			{Name: "label", In: "path", Description: "A label of a version.", Pattern: "^[^/:]+$"},
		} {
			if strings.Contains(path, "{"+p.Name+"}") {
				o.Parameters = append(o.Parameters, p)
			}
		}
		a.Operations = append(a.Operations, o)
	}
	for suffix, name := range map[string]string{"": "", "/versions/{version}": "OfVersion", "/labels/{label}": "OfLabel"} {
		at := "/v1/models/{model}" + suffix
		add("GET", at, "getStatus"+name, "models", "States of the versions of a model", nil, &servingpb.GetModelStatusResponse{})
		add("GET", at+"/metadata", "getMetadata"+name, "models", "Signatures of a model", nil, MetadataResult{})
		add("POST", at+":predict", "predict"+name, "predictions", "Run a signature", PredictRequest{}, PredictResult{})
		add("POST", at+":classify", "classify"+name, "predictions", "Classify examples", ExamplesRequest{}, ExamplesResult{})
		add("POST", at+":regress", "regress"+name, "predictions", "Compute a value for each example", ExamplesRequest{}, ExamplesResult{})
		if suffix == "/labels/{label}" {
			continue
		}
		at = "/v2/models/{model}" + suffix
		add("GET", at, "describeModel"+name, "inference protocol", "Inputs and outputs of a model", nil, ModelDescription{})
		add("GET", at+"/ready", "modelReady"+name, "inference protocol", "Whether a model is ready", nil, Ready{}, http.StatusServiceUnavailable)
		add("POST", at+"/infer", "infer"+name, "inference protocol", "Run the default signature", InferRequest{}, InferResult{})
	}
	add("GET", "/v2", "describeServer", "inference protocol", "Name and extensions of the server", nil, ServerDescription{})
	add("GET", "/v2/health/live", "serverLive", "inference protocol", "Whether the server lives", nil, Live{})
	add("GET", "/v2/health/ready", "serverReady", "inference protocol", "Whether all models are ready", nil, Ready{}, http.StatusServiceUnavailable)
	return a
}

// serveDescription answers a request for the description or its page. It reports whether the path
// is one of these.
func (s *Server) serveDescription(w http.ResponseWriter, r *http.Request) bool {
	path := r.URL.Path
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch {
	case path == "/openapi.json" || path == "/docs/openapi.json":
		b, err := description(s.config.Version).Document()
		if err != nil {
			b = rest.ErrorBody(status.Internalf("%w", err))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b) // the client may have gone
		return true
	case path == "/docs":
		http.Redirect(w, r, "/docs/", http.StatusMovedPermanently)
		return true
	}
	file, ok := strings.CutPrefix(path, "/docs/")
	return ok && openapi.ServePage(w, r, file)
}
