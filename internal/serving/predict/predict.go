// Package predict implements the services of TensorFlow Serving on the models of a server. The REST
// API and gRPC share it.
package predict

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/models"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/internal/serving/stats"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// API answers requests. It may be used concurrently.
type API struct {
	Models *models.Manager
	Stats  *stats.Stats
	// CheckMethods refuses a signature whose method is not that of the request.
	CheckMethods bool
	// Content returns elements as bytes in tensor_content instead of typed fields.
	Content bool
}

// Entrypoints, the ways in which a request can come.
const (
	REST = "REST"
	GRPC = "GRPC"
)

// Count counts a request that ends with *err. It is deferred with the time of the beginning.
func (a *API) Count(spec *servingpb.ModelSpec, api, entrypoint string, start time.Time, err *error) {
	code := "OK"
	model := spec.GetName()
	if *err != nil {
		code = status.CodeOf(*err).String()
		if _, known := a.Models.Available(model); !known {
			model = "" // names of clients would add series without bound
		}
	}
	a.Stats.Request(model, api, entrypoint, code, time.Since(start))
}

// specOf returns the model_spec of an answer.
func specOf(name string, version int64, signature string) *servingpb.ModelSpec {
	return &servingpb.ModelSpec{
		Name: name, SignatureName: signature,
		VersionChoice: &servingpb.ModelSpec_Version{Version: wrapperspb.Int64(version)},
	}
}

func missingSpec(spec *servingpb.ModelSpec) error {
	if spec == nil {
		return status.InvalidArgumentf("Missing ModelSpec")
	}
	return nil
}

// Run runs a signature and records the time.
func (a *API) Run(
	ctx context.Context, model string, sig *servable.Signature, inputs map[string]tensor.Tensor, filter []string,
) (map[string]tensor.Tensor, error) {
	start := time.Now()
	out, err := sig.Predict(ctx, inputs, filter)
	if err == nil {
		a.Stats.Runtime(model, "Predict", time.Since(start))
	}
	return out, err
}

// Predict implements PredictionService.
func (a *API) Predict(ctx context.Context, q *servingpb.PredictRequest) (r *servingpb.PredictResponse, err error) {
	spec := q.GetModelSpec()
	defer a.Count(spec, "Predict", GRPC, time.Now(), &err)
	if err := missingSpec(spec); err != nil {
		return nil, err
	}
	held, err := a.Models.Hold(spec)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	sig, ok := held.Signature(spec.GetSignatureName())
	if !ok {
		return nil, status.FailedPreconditionf("Serving signature key \"%s\" not found.", orDefault(spec.GetSignatureName()))
	}
	if a.CheckMethods && sig.Definition.GetMethodName() != savedmodel.MethodPredict {
		return nil, status.InvalidArgumentf("Expected prediction signature method_name to be \"%s\". Was: %s", savedmodel.MethodPredict, sig.Definition.GetMethodName())
	}
	inputs, err := servable.Inputs(q)
	if err != nil {
		return nil, err
	}
	defer servable.Release(inputs)
	out, err := a.Run(ctx, spec.GetName(), sig, inputs, q.GetOutputFilter())
	if err != nil {
		return nil, err
	}
	defer servable.Release(out)
	r = &servingpb.PredictResponse{ModelSpec: specOf(spec.GetName(), held.Version, sig.Name), Outputs: make(map[string]*pb.TensorProto, len(out))}
	for name, t := range out {
		if r.Outputs[name], err = a.tensorProto(&t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func orDefault(signature string) string {
	if signature == "" {
		return savedmodel.DefaultSignature
	}
	return signature
}

// examples counts the examples of a request.
func (a *API) examples(model string, in *servingpb.Input) {
	a.Stats.Examples(model, len(in.GetExampleList().GetExamples())+len(in.GetExampleListWithContext().GetExamples()))
}

// checkMethod returns an error if methods are checked and that of a signature is another one.
func (a *API) checkMethod(held models.Held, signature, want, kind string) error {
	sig, ok := held.Signature(signature)
	if !a.CheckMethods || !ok || sig.Definition.GetMethodName() == want {
		return nil
	}
	return status.InvalidArgumentf("Expected %s signature method_name to be \"%s\". Was: %s", kind, want, sig.Definition.GetMethodName())
}

// Classify implements PredictionService.
func (a *API) Classify(ctx context.Context, q *servingpb.ClassificationRequest) (*servingpb.ClassificationResponse, error) {
	return a.ClassifyFrom(ctx, q, GRPC)
}

// ClassifyFrom is Classify for an entrypoint.
func (a *API) ClassifyFrom(ctx context.Context, q *servingpb.ClassificationRequest, entrypoint string) (r *servingpb.ClassificationResponse, err error) {
	spec := q.GetModelSpec()
	defer a.Count(spec, "Classify", entrypoint, time.Now(), &err)
	if err := missingSpec(spec); err != nil {
		return nil, err
	}
	held, err := a.Models.Hold(spec)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	if err := a.checkMethod(held, spec.GetSignatureName(), savedmodel.MethodClassify, "classification"); err != nil {
		return nil, err
	}
	a.examples(spec.GetName(), q.GetInput())
	start := time.Now()
	result, err := held.Classify(ctx, spec.GetSignatureName(), q.GetInput())
	if err != nil {
		return nil, err
	}
	a.Stats.Runtime(spec.GetName(), "Classify", time.Since(start))
	return &servingpb.ClassificationResponse{ModelSpec: specOf(spec.GetName(), held.Version, orDefault(spec.GetSignatureName())), Result: result}, nil
}

// Regress implements PredictionService.
func (a *API) Regress(ctx context.Context, q *servingpb.RegressionRequest) (*servingpb.RegressionResponse, error) {
	return a.RegressFrom(ctx, q, GRPC)
}

// RegressFrom is Regress for an entrypoint.
func (a *API) RegressFrom(ctx context.Context, q *servingpb.RegressionRequest, entrypoint string) (r *servingpb.RegressionResponse, err error) {
	spec := q.GetModelSpec()
	defer a.Count(spec, "Regress", entrypoint, time.Now(), &err)
	if err := missingSpec(spec); err != nil {
		return nil, err
	}
	held, err := a.Models.Hold(spec)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	if err := a.checkMethod(held, spec.GetSignatureName(), savedmodel.MethodRegress, "regression"); err != nil {
		return nil, err
	}
	a.examples(spec.GetName(), q.GetInput())
	start := time.Now()
	result, err := held.Regress(ctx, spec.GetSignatureName(), q.GetInput())
	if err != nil {
		return nil, err
	}
	a.Stats.Runtime(spec.GetName(), "Regress", time.Since(start))
	return &servingpb.RegressionResponse{ModelSpec: specOf(spec.GetName(), held.Version, orDefault(spec.GetSignatureName())), Result: result}, nil
}

// MultiInference implements PredictionService.
func (a *API) MultiInference(ctx context.Context, q *servingpb.MultiInferenceRequest) (r *servingpb.MultiInferenceResponse, err error) {
	var first *servingpb.ModelSpec
	if len(q.GetTasks()) > 0 {
		first = q.GetTasks()[0].GetModelSpec()
	}
	defer a.Count(first, "MultiInference", GRPC, time.Now(), &err)
	if err := checkTasks(q.GetTasks()); err != nil {
		return nil, err
	}
	held, err := a.Models.Hold(first)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	a.examples(first.GetName(), q.GetInput())
	r = &servingpb.MultiInferenceResponse{}
	for _, task := range q.GetTasks() {
		out, err := held.Infer(ctx, task, q.GetInput())
		if err != nil {
			return nil, err
		}
		out.ModelSpec = specOf(first.GetName(), held.Version, orDefault(task.GetModelSpec().GetSignatureName()))
		r.Results = append(r.Results, out)
	}
	return r, nil
}

// checkTasks checks that tasks are different signatures of one model.
func checkTasks(tasks []*servingpb.InferenceTask) error {
	if len(tasks) == 0 {
		return status.InvalidArgumentf("Inference request must not be empty.")
	}
	seen := map[string]bool{}
	for _, task := range tasks {
		spec := task.GetModelSpec()
		signature := orDefault(spec.GetSignatureName())
		switch {
		case spec.GetName() == "":
			return status.InvalidArgumentf("Found ModelSpec with an empty model name.")
		case spec.GetName() != tasks[0].GetModelSpec().GetName():
			return status.InvalidArgumentf("All ModelSpecs in a MultiInferenceRequest must access the same model name.")
		case seen[signature]:
			return status.InvalidArgumentf("Duplicate evaluation of signature: %s", signature)
		}
		seen[signature] = true
	}
	return nil
}

// signatureDef is the metadata that a model has.
const signatureDef = "signature_def"

// GetModelMetadata implements PredictionService.
func (a *API) GetModelMetadata(_ context.Context, q *servingpb.GetModelMetadataRequest) (*servingpb.GetModelMetadataResponse, error) {
	if err := missingSpec(q.GetModelSpec()); err != nil {
		return nil, err
	}
	if len(q.GetMetadataField()) == 0 {
		return nil, status.InvalidArgumentf("GetModelMetadataRequest must specify at least one metadata_field")
	}
	for _, field := range q.GetMetadataField() {
		if field != signatureDef {
			return nil, status.InvalidArgumentf("Metadata field %s is not supported", field)
		}
	}
	spec, signatures, err := a.Signatures(q.GetModelSpec())
	if err != nil {
		return nil, err
	}
	b, err := proto.Marshal(signatures)
	if err != nil {
		return nil, status.Internalf("%w", err)
	}
	return &servingpb.GetModelMetadataResponse{ModelSpec: spec, Metadata: map[string]*anypb.Any{
		signatureDef: {TypeUrl: "type.googleapis.com/tensorflow.serving.SignatureDefMap", Value: b},
	}}, nil
}

// Signatures returns the signatures of a version of a model.
func (a *API) Signatures(spec *servingpb.ModelSpec) (*servingpb.ModelSpec, *servingpb.SignatureDefMap, error) {
	held, err := a.Models.Hold(spec)
	if err != nil {
		return nil, nil, err
	}
	defer held.Release()
	return specOf(spec.GetName(), held.Version, ""), &servingpb.SignatureDefMap{SignatureDef: held.Definitions}, nil
}

// GetModelStatus implements ModelService.
func (a *API) GetModelStatus(_ context.Context, q *servingpb.GetModelStatusRequest) (*servingpb.GetModelStatusResponse, error) {
	if err := missingSpec(q.GetModelSpec()); err != nil {
		return nil, err
	}
	list, err := a.Models.Status(q.GetModelSpec())
	if err != nil {
		return nil, err
	}
	return &servingpb.GetModelStatusResponse{ModelVersionStatus: list}, nil
}

// HandleReloadConfigRequest implements ModelService.
func (a *API) HandleReloadConfigRequest(ctx context.Context, q *servingpb.ReloadConfigRequest) (*servingpb.ReloadConfigResponse, error) {
	if q.GetConfig().GetModelConfigList() == nil {
		return nil, status.InvalidArgumentf("ServerModelConfig type not supported by HandleReloadConfigRequest. Only ModelConfigList is currently supported")
	}
	const metricSize = 128 // memory of a metric of the answer, in bytes; its name may have none
	if n := len(q.GetMetricNames()); !membudget.Take(int64(n) * metricSize) {
		return nil, status.ResourceExhaustedf("there is no memory for an answer with %d metrics (--memory-limit)", n)
	}
	before := a.Stats.Counters()
	if err := a.Models.Apply(ctx, q.GetConfig()); err != nil {
		return nil, err
	}
	r := &servingpb.ReloadConfigResponse{Status: &servingpb.StatusProto{}}
	after := a.Stats.Counters()
	for _, name := range q.GetMetricNames() {
		r.Metric = append(r.Metric, &servingpb.Metric{Name: name, ValueIncrease: &servingpb.Metric_Int64ValueIncrease{Int64ValueIncrease: after[name] - before[name]}})
	}
	return r, nil
}
