package serve

import (
	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/savedmodel"
)

// ModelOption configures how a model is loaded.
type ModelOption func(*settings)

type settings struct {
	tags         []string
	session      []weft.SessionOption
	clearDevices bool
}

func newSettings(opts []ModelOption) *settings {
	s := &settings{}
	for _, opt := range opts {
		opt(s)
	}
	if len(s.tags) == 0 {
		s.tags = []string{savedmodel.TagServe}
	}
	return s
}

// WithTags selects the graph that has exactly the given tags. The default is [savedmodel.TagServe].
func WithTags(tags ...string) ModelOption {
	return func(s *settings) { s.tags = tags }
}

// WithClearDevices removes the devices that the nodes of the model request, so that a model of a
// cluster can run in one process.
func WithClearDevices() ModelOption {
	return func(s *settings) { s.clearDevices = true }
}

// WithSession adds options of the session in which the model runs.
func WithSession(opts ...weft.SessionOption) ModelOption {
	return func(s *settings) { s.session = append(s.session, opts...) }
}
