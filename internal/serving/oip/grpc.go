package oip

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/predict"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// service is the name of the service.
const service = "/inference.GRPCInferenceService/"

// Register registers the service with a server.
func (s *Server) Register(to *rpc.Server, log *slog.Logger) {
	rpc.RegisterUnary(to, log, service+"ServerLive", func(context.Context, *servingpb.ServerLiveRequest) (*servingpb.ServerLiveResponse, error) {
		return &servingpb.ServerLiveResponse{Live: true}, nil
	})
	rpc.RegisterUnary(to, log, service+"ServerReady", func(context.Context, *servingpb.ServerReadyRequest) (*servingpb.ServerReadyResponse, error) {
		return &servingpb.ServerReadyResponse{Ready: s.ready()}, nil
	})
	rpc.RegisterUnary(to, log, service+"ModelReady", func(_ context.Context, q *servingpb.ModelReadyRequest) (*servingpb.ModelReadyResponse, error) {
		ready, err := s.modelReady(q.GetName(), q.GetVersion())
		if err != nil {
			return nil, err
		}
		return &servingpb.ModelReadyResponse{Ready: ready}, nil
	})
	rpc.RegisterUnary(to, log, service+"ServerMetadata", func(context.Context, *servingpb.ServerMetadataRequest) (*servingpb.ServerMetadataResponse, error) {
		return &servingpb.ServerMetadataResponse{Name: s.Name, Version: s.Version, Extensions: extensions()}, nil
	})
	rpc.RegisterUnary(to, log, service+"ModelMetadata", func(_ context.Context, q *servingpb.ModelMetadataRequest) (*servingpb.ModelMetadataResponse, error) {
		return s.metadata(q.GetName(), q.GetVersion())
	})
	rpc.RegisterUnary(to, log, service+"ModelInfer", s.modelInfer)
}

func (s *Server) modelInfer(ctx context.Context, q *servingpb.ModelInferRequest) (*servingpb.ModelInferResponse, error) {
	inputs, err := tensorsOf(q)
	if err != nil {
		return nil, err
	}
	defer servable.Release(inputs)
	req := &request{model: q.GetModelName(), version: q.GetModelVersion(), signature: q.GetParameters()["signature_name"].GetStringParam(), inputs: inputs}
	for _, o := range q.GetOutputs() {
		req.outputs = append(req.outputs, o.GetName())
	}
	version, outs, release, err := s.infer(ctx, req, predict.GRPC)
	if err != nil {
		return nil, err
	}
	defer release()
	r := &servingpb.ModelInferResponse{ModelName: q.GetModelName(), ModelVersion: strconv.FormatInt(version, 10), Id: q.GetId()}
	for _, o := range outs {
		r.Outputs = append(r.Outputs, &servingpb.ModelInferResponse_InferOutputTensor{Name: o.name, Datatype: datatype(o.t.DType()), Shape: o.t.Shape()})
		raw, err := appendRaw([]byte{}, o.name, &o.t)
		if err != nil {
			return nil, err
		}
		r.RawOutputContents = append(r.RawOutputContents, raw)
	}
	return r, nil
}

// tensorsOf returns the inputs of a request, whose elements are all in the inputs or all in
// raw_input_contents.
func tensorsOf(q *servingpb.ModelInferRequest) (inputs map[string]tensor.Tensor, err error) {
	raw := q.GetRawInputContents()
	if len(raw) > 0 && len(raw) != len(q.GetInputs()) {
		return nil, status.InvalidArgumentf("raw_input_contents has %d elements for %d inputs", len(raw), len(q.GetInputs()))
	}
	inputs = map[string]tensor.Tensor{}
	defer func() {
		if err != nil {
			servable.Release(inputs)
		}
	}()
	for i, in := range q.GetInputs() {
		d, err := dtypeOf(in.GetDatatype())
		if err != nil {
			return inputs, err
		}
		shape := append(tensor.Shape{}, in.GetShape()...)
		if err := checkShape(in.GetName(), shape); err != nil {
			return inputs, err
		}
		if _, twice := inputs[in.GetName()]; twice {
			return inputs, status.InvalidArgumentf("input '%s' is given twice", in.GetName())
		}
		var t tensor.Tensor
		switch {
		case len(raw) > 0 && in.GetContents() != nil:
			err = status.InvalidArgumentf("contents of input '%s' and raw_input_contents cannot both be given", in.GetName())
		case len(raw) > 0:
			t, err = decodeRaw(in.GetName(), d, shape, raw[i])
		default:
			t, err = typed(in.GetName(), d, shape, in.GetContents())
		}
		if err != nil {
			return inputs, err
		}
		inputs[in.GetName()] = t
	}
	return inputs, nil
}

// typed returns the tensor of elements in the field of their type.
func typed(input string, d tensor.DType, shape tensor.Shape, c *servingpb.InferTensorContents) (tensor.Tensor, error) {
	switch d {
	case tensor.Bool:
		return converted(input, shape, c.GetBoolContents(), func(v bool) bool { return v })
	case tensor.Int8:
		return converted(input, shape, c.GetIntContents(), func(v int32) int8 { return int8(v) })
	case tensor.Int16:
		return converted(input, shape, c.GetIntContents(), func(v int32) int16 { return int16(v) })
	case tensor.Int32:
		return converted(input, shape, c.GetIntContents(), func(v int32) int32 { return v })
	case tensor.Int64:
		return converted(input, shape, c.GetInt64Contents(), func(v int64) int64 { return v })
	case tensor.Uint8:
		return converted(input, shape, c.GetUintContents(), func(v uint32) uint8 { return uint8(v) })
	case tensor.Uint16:
		return converted(input, shape, c.GetUintContents(), func(v uint32) uint16 { return uint16(v) })
	case tensor.Uint32:
		return converted(input, shape, c.GetUintContents(), func(v uint32) uint32 { return v })
	case tensor.Uint64:
		return converted(input, shape, c.GetUint64Contents(), func(v uint64) uint64 { return v })
	case tensor.Float32:
		return converted(input, shape, c.GetFp32Contents(), func(v float32) float32 { return v })
	case tensor.Float64:
		return converted(input, shape, c.GetFp64Contents(), func(v float64) float64 { return v })
	case tensor.String:
		var meter membudget.Meter // of the copies
		return converted(input, shape, c.GetBytesContents(), func(v []byte) string {
			meter.MustTake(len(v))
			return string(v)
		})
	}
	return tensor.Tensor{}, status.InvalidArgumentf("input '%s' of type %s needs raw_input_contents", input, datatype(d))
}

func converted[F any, T tensor.Elem](input string, shape tensor.Shape, vals []F, convert func(F) T) (tensor.Tensor, error) {
	if int64(len(vals)) != shape.NumElements() {
		return tensor.Tensor{}, status.InvalidArgumentf("input '%s' of shape %v has %d elements", input, shape, len(vals))
	}
	out := membudget.Make[T](len(vals))
	for i, v := range vals {
		out[i] = convert(v)
	}
	return tensor.FromSlice(shape, out)
}
