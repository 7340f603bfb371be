package serving

import (
	"runtime"
	"time"

	"google.golang.org/protobuf/encoding/prototext"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/models"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/status"
)

// Defaults of the parameters of batching, as in TensorFlow.
const (
	defaultMaxBatch  = 1000
	defaultMaxQueued = 10
)

// ParseBatching returns the parameters in a BatchingParameters message in text form, which may be
// empty.
func ParseBatching(text []byte) (*servable.Batching, error) {
	p := &servingpb.BatchingParameters{}
	if err := prototext.Unmarshal(text, p); err != nil {
		return nil, status.InvalidArgumentf("Failed to parse BatchingParameters: %w", err)
	}
	b := &servable.Batching{
		MaxBatch: defaultMaxBatch, MaxQueued: defaultMaxQueued, Threads: runtime.GOMAXPROCS(0),
		Timeout:    time.Duration(p.GetBatchTimeoutMicros().GetValue()) * time.Microsecond,
		SplitLarge: p.GetEnableLargeBatchSplitting().GetValue(),
	}
	for _, set := range []struct {
		value interface{ GetValue() int64 }
		given bool
		to    *int
	}{
		{p.GetMaxBatchSize(), p.MaxBatchSize != nil, &b.MaxBatch},
		{p.GetMaxEnqueuedBatches(), p.MaxEnqueuedBatches != nil, &b.MaxQueued},
		{p.GetNumBatchThreads(), p.NumBatchThreads != nil, &b.Threads},
		{p.GetMaxExecutionBatchSize(), p.MaxExecutionBatchSize != nil && b.SplitLarge, &b.MaxBatch},
	} {
		if !set.given {
			continue
		}
		if *set.to = int(set.value.GetValue()); *set.to < 1 {
			return nil, status.InvalidArgumentf("the parameters of batching must be at least 1, got %d", *set.to)
		}
	}
	for _, n := range p.GetAllowedBatchSizes() {
		if k := len(b.Allowed); n < 1 || k > 0 && int(n) <= b.Allowed[k-1] {
			return nil, status.InvalidArgumentf("allowed_batch_sizes entries must be monotonically increasing")
		}
		b.Allowed = append(b.Allowed, int(n))
	}
	if k := len(b.Allowed); k > 0 && b.Allowed[k-1] != b.MaxBatch {
		return nil, status.InvalidArgumentf("final entry in allowed_batch_sizes must equal max_batch_size")
	}
	return b, nil
}

// modelBatching returns the parameters in the folder of a version, or nil if there are none.
func modelBatching(dir string) (*servable.Batching, error) {
	text, err := fileio.Files{}.Read(fileio.Join(dir, "batching_params.pbtxt"))
	if status.CodeOf(err) == status.NotFound {
		return nil, nil //nolint:nilnil // see above
	}
	if err != nil {
		return nil, status.Errorf(status.Unavailable, "%w", err)
	}
	return ParseBatching(text)
}

// ParseConfig parses a ModelServerConfig in text form.
func ParseConfig(text []byte) (*servingpb.ModelServerConfig, error) { return models.ParseConfig(text) }
