package predict

import (
	"log/slog"

	"github.com/weft-ml/weft/internal/transport/rpc"
)

// Names of the services.
const (
	PredictionService = "tensorflow.serving.PredictionService"
	ModelService      = "tensorflow.serving.ModelService"
)

// Register registers the services with a server.
func (a *API) Register(s *rpc.Server, log *slog.Logger) {
	rpc.RegisterUnary(s, log, "/"+PredictionService+"/Predict", a.Predict)
	rpc.RegisterUnary(s, log, "/"+PredictionService+"/Classify", a.Classify)
	rpc.RegisterUnary(s, log, "/"+PredictionService+"/Regress", a.Regress)
	rpc.RegisterUnary(s, log, "/"+PredictionService+"/MultiInference", a.MultiInference)
	rpc.RegisterUnary(s, log, "/"+PredictionService+"/GetModelMetadata", a.GetModelMetadata)
	rpc.RegisterUnary(s, log, "/"+ModelService+"/GetModelStatus", a.GetModelStatus)
	rpc.RegisterUnary(s, log, "/"+ModelService+"/HandleReloadConfigRequest", a.HandleReloadConfigRequest)
}
