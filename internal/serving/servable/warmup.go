package servable

import (
	"context"
	"errors"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// maxWarmup is the largest number of records that a warm-up file may have.
const maxWarmup = 1000

// WarmUp runs the recorded requests of the model, each the given number of times, so that the first
// requests of clients are not slower than others. It returns the number of records. A request that
// fails is an error.
func (s *Servable) WarmUp(ctx context.Context, times int) (records int, err error) {
	path := fileio.Join(s.Dir, "assets.extra", "tf_serving_warmup_requests")
	f, err := fileio.Files{}.In(ctx).Open(path)
	if status.CodeOf(err) == status.NotFound {
		return 0, nil
	}
	if err != nil {
		return 0, status.Errorf(status.Unavailable, "%w", err)
	}
	defer f.Close()
	in, err := record.NewReader(f, record.None)
	if err != nil {
		return 0, err
	}
	for {
		b, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return records, nil
		case err != nil:
			return records, status.Errorf(status.CodeOf(err), "Failed to read warmup records at %s: %w", path, err)
		case records == maxWarmup:
			return records, status.InvalidArgumentf("Number of warmup records exceeds the maximum (%d) at %s", maxWarmup, path)
		}
		log := &servingpb.PredictionLog{}
		if err := proto.Unmarshal(b, log); err != nil {
			return records, status.InvalidArgumentf("Failed to parse warmup record: %w from %s", err, path)
		}
		records++
		for range times {
			if err := s.replay(ctx, log); err != nil {
				return records, status.Errorf(status.CodeOf(err), "warmup record %d at %s: %w", records, path, err)
			}
		}
	}
}

// replay runs a recorded request. Its model_spec does not choose the model.
func (s *Servable) replay(ctx context.Context, log *servingpb.PredictionLog) error {
	switch r := log.GetLogType().(type) {
	case *servingpb.PredictionLog_PredictLog:
		return s.replayPredict(ctx, r.PredictLog.GetRequest())
	case *servingpb.PredictionLog_ClassifyLog:
		q := r.ClassifyLog.GetRequest()
		_, err := s.Classify(ctx, q.GetModelSpec().GetSignatureName(), q.GetInput())
		return err
	case *servingpb.PredictionLog_RegressLog:
		q := r.RegressLog.GetRequest()
		_, err := s.Regress(ctx, q.GetModelSpec().GetSignatureName(), q.GetInput())
		return err
	case *servingpb.PredictionLog_MultiInferenceLog:
		q := r.MultiInferenceLog.GetRequest()
		for _, task := range q.GetTasks() {
			if _, err := s.Infer(ctx, task, q.GetInput()); err != nil {
				return err
			}
		}
		return nil
	}
	return status.Unimplementedf("Unsupported log_type for warmup: %T", log.GetLogType())
}

func (s *Servable) replayPredict(ctx context.Context, q *servingpb.PredictRequest) error {
	sig, ok := s.Signature(q.GetModelSpec().GetSignatureName())
	if !ok {
		return status.FailedPreconditionf("Serving signature key \"%s\" not found.", q.GetModelSpec().GetSignatureName())
	}
	inputs, err := Inputs(q)
	if err != nil {
		return err
	}
	defer Release(inputs)
	out, err := sig.Predict(ctx, inputs, q.GetOutputFilter())
	Release(out)
	return err
}

// Inputs returns the tensors of a request.
func Inputs(q *servingpb.PredictRequest) (map[string]tensor.Tensor, error) {
	inputs := make(map[string]tensor.Tensor, len(q.GetInputs()))
	for name, p := range q.GetInputs() {
		t, err := pbconv.TensorFromProto(p)
		if err != nil {
			Release(inputs)
			return nil, status.InvalidArgumentf("tensor parsing error: %s", name)
		}
		inputs[name] = t
	}
	return inputs, nil
}

// Infer runs one task of a request with several.
func (s *Servable) Infer(ctx context.Context, task *servingpb.InferenceTask, in *servingpb.Input) (*servingpb.InferenceResult, error) {
	name := task.GetModelSpec().GetSignatureName()
	if name == "" {
		name = savedmodel.DefaultSignature
	}
	if _, ok := s.Signature(name); !ok {
		return nil, status.InvalidArgumentf("Requested signature not found in model graph: %s", name)
	}
	out := &servingpb.InferenceResult{}
	switch task.GetMethodName() {
	case savedmodel.MethodClassify:
		r, err := s.Classify(ctx, name, in)
		if err != nil {
			return nil, err
		}
		out.Result = &servingpb.InferenceResult_ClassificationResult{ClassificationResult: r}
	case savedmodel.MethodRegress:
		r, err := s.Regress(ctx, name, in)
		if err != nil {
			return nil, err
		}
		out.Result = &servingpb.InferenceResult_RegressionResult{RegressionResult: r}
	default:
		return nil, status.Unimplementedf("Unsupported signature method_name: %s", task.GetMethodName())
	}
	return out, nil
}
