package models

import (
	"strings"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/status"
)

// Platform is the platform of TensorFlow's models, the only one.
const Platform = "tensorflow"

// ParseConfig parses a ModelServerConfig in text form.
func ParseConfig(text []byte) (*servingpb.ModelServerConfig, error) {
	config := &servingpb.ModelServerConfig{}
	if err := prototext.Unmarshal(text, config); err != nil {
		return nil, status.InvalidArgumentf("Failed to parse ModelServerConfig: %w", err)
	}
	return config, nil
}

// maxModels bounds the models of a configuration. The folder of each is listed at every poll.
const maxModels = 100_000

// listOf returns the models of a valid configuration. An empty one has none.
func listOf(config *servingpb.ModelServerConfig) ([]*servingpb.ModelConfig, error) {
	if config.GetCustomModelConfig() != nil {
		return nil, status.InvalidArgumentf("custom_model_config is not supported")
	}
	list := config.GetModelConfigList().GetConfig()
	if len(list) > maxModels {
		return nil, status.ResourceExhaustedf("The model config list has %d models, at most %d are allowed.", len(list), maxModels)
	}
	seen := map[string]bool{}
	for _, m := range list {
		switch name, path := m.GetName(), m.GetBasePath(); {
		case seen[name]:
			return nil, status.InvalidArgumentf("Illegal to list model %s multiple times in config list", name)
		case !fileio.IsAbs(path):
			return nil, status.InvalidArgumentf("Expected model %s to have an absolute path or URI; got base_path()=%s", name, path)
		case strings.Contains(path, "://") && !fileio.IsRemote(path):
			return nil, status.InvalidArgumentf("model %s: the scheme of %s is not supported", name, path)
		case m.GetModelPlatform() == "" && m.GetModelType() == servingpb.ModelType_MODEL_TYPE_UNSPECIFIED:
			return nil, status.InvalidArgumentf("Illegal setting neither ModelServerConfig::model_type (deprecated) nor ModelServerConfig::model_platform, model name is %s", name)
		case m.GetModelPlatform() != "" && m.GetModelType() != servingpb.ModelType_MODEL_TYPE_UNSPECIFIED:
			return nil, status.InvalidArgumentf("Illegal setting both ModelServerConfig::model_type (deprecated) and ModelServerConfig::model_platform, model name is %s", name)
		case m.GetModelPlatform() != "" && m.GetModelPlatform() != Platform, m.GetModelType() == servingpb.ModelType_OTHER:
			return nil, status.InvalidArgumentf("Illegal platform %q of model %s: only %q is supported", m.GetModelPlatform(), name, Platform)
		}
		seen[m.GetName()] = true
	}
	return list, nil
}
