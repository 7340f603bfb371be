// Package oip is the Open Inference Protocol, version 2, over HTTP and gRPC.
//
// The protocol names no signature: a request runs the default signature of a model, or the one that
// its parameter "signature_name" names.
package oip

import (
	"context"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/models"
	"github.com/weft-ml/weft/internal/serving/predict"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Server answers requests. It may be used concurrently.
type Server struct {
	API     *predict.API
	Name    string // of the server
	Version string // of the server
	Timeout time.Duration
	MaxBody int64 // size of the largest request over HTTP, in bytes
	// Stopping reports whether the server accepts no further requests.
	Stopping func() bool
}

// platform is the name of SavedModels in the protocol.
const platform = "tensorflow_savedmodel"

func extensions() []string { return []string{"binary_tensor_data"} }

func (s *Server) ready() bool { return !s.Stopping() && s.API.Models.Ready() }

// specOf returns a version of a model.
func specOf(name, version string) (*servingpb.ModelSpec, error) {
	spec := &servingpb.ModelSpec{Name: name}
	if version != "" {
		v, err := strconv.ParseInt(version, 10, 64)
		if err != nil || v < 0 {
			return nil, status.InvalidArgumentf("the version of a model must be a number, got %q", version)
		}
		spec.VersionChoice = &servingpb.ModelSpec_Version{Version: wrapperspb.Int64(v)}
	}
	return spec, nil
}

// hold returns a version of a model and one of its signatures. The caller releases the version.
func (s *Server) hold(name, version, signature string) (models.Held, *servable.Signature, error) {
	spec, err := specOf(name, version)
	if err != nil {
		return models.Held{}, nil, err
	}
	held, err := s.API.Models.Hold(spec)
	if err != nil {
		return models.Held{}, nil, err
	}
	sig, ok := held.Signature(signature)
	if !ok {
		held.Release()
		if signature == "" {
			signature = "serving_default"
		}
		return models.Held{}, nil, status.InvalidArgumentf("model '%s' has no signature '%s'", name, signature)
	}
	return held, sig, nil
}

// modelReady reports whether a version of a model can be used. The error is NotFound for an unknown
// model.
func (s *Server) modelReady(name, version string) (bool, error) {
	spec, err := specOf(name, version)
	if err != nil {
		return false, err
	}
	held, err := s.API.Models.Hold(spec)
	if err == nil {
		held.Release()
		return true, nil
	}
	if _, known := s.API.Models.Available(name); known {
		return false, nil
	}
	return false, err
}

// metadata describes a version of a model.
func (s *Server) metadata(name, version string) (*servingpb.ModelMetadataResponse, error) {
	held, sig, err := s.hold(name, version, "")
	if err != nil {
		return nil, err
	}
	defer held.Release()
	r := &servingpb.ModelMetadataResponse{Name: name, Platform: platform, Inputs: describe(sig.Inputs), Outputs: describe(sig.Outputs)}
	list, _ := s.API.Models.Available(name)
	for _, v := range list {
		r.Versions = append(r.Versions, strconv.FormatInt(v, 10))
	}
	return r, nil
}

func describe(args []serve.Argument) []*servingpb.ModelMetadataResponse_TensorMetadata {
	out := make([]*servingpb.ModelMetadataResponse_TensorMetadata, len(args))
	for i, a := range args {
		out[i] = &servingpb.ModelMetadataResponse_TensorMetadata{Name: a.Name, Datatype: datatype(a.DType), Shape: a.Shape.Dims()}
	}
	return out
}

// request is an inference request of either transport.
type request struct {
	model, version, signature string
	inputs                    map[string]tensor.Tensor
	outputs                   []string // all if there are none
}

// output is one output of an answer.
type output struct {
	name string
	t    tensor.Tensor
}

// infer runs a request. The caller calls release when it has used the outputs.
func (s *Server) infer(ctx context.Context, q *request, entrypoint string) (version int64, outs []output, release func(), err error) {
	defer s.API.Count(&servingpb.ModelSpec{Name: q.model}, "Predict", entrypoint, time.Now(), &err)
	held, sig, err := s.hold(q.model, q.version, q.signature)
	if err != nil {
		return 0, nil, nil, err
	}
	defer held.Release()
	if err := check(sig, q); err != nil {
		return 0, nil, nil, err
	}
	got, err := s.API.Run(ctx, q.model, sig, q.inputs, q.outputs)
	if err != nil {
		return 0, nil, nil, err
	}
	names := q.outputs
	if len(names) == 0 {
		for _, o := range sig.Outputs {
			names = append(names, o.Name)
		}
	}
	for _, name := range names {
		outs = append(outs, output{name, got[name]})
	}
	return held.Version, outs, func() { servable.Release(got) }, nil
}

// check checks the inputs and outputs of a request against a signature.
func check(sig *servable.Signature, q *request) error {
	for name, t := range q.inputs {
		in := sig.Input(name)
		if in == nil {
			return status.InvalidArgumentf("unexpected inference input '%s' for model '%s'", name, q.model)
		}
		if in.DType != t.DType() {
			return status.InvalidArgumentf("inference input '%s' data-type is '%s', but model '%s' expects '%s'", name, datatype(t.DType()), q.model, datatype(in.DType))
		}
	}
	for i, name := range q.outputs {
		if sig.Output(name) == nil {
			return status.InvalidArgumentf("unexpected inference output '%s' for model '%s'", name, q.model)
		}
		if slices.Contains(q.outputs[:i], name) {
			return status.InvalidArgumentf("inference output '%s' is named twice", name)
		}
	}
	return nil
}
