package data

import (
	"strings"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const configs = "optimization_configs: list(string) = []"
	for _, p := range []struct {
		name, doc string
		in, attrs []string
	}{
		{"ModelDataset", "Gives a dataset whose parallelism may be tuned.", nil,
			typed("algorithm: int = 0", "cpu_budget: int = 0", "ram_budget: int = 0")},
		{"MaxIntraOpParallelismDataset", "Gives a dataset whose functions use a bounded number of threads.", []string{"max_intra_op_parallelism: int64"}, typed()},
		{"PrivateThreadPoolDataset", "Gives a dataset whose functions use threads of their own.", []string{"num_threads: int64"}, typed()},
		{"FinalizeDataset", "Gives a dataset that is ready to be iterated over.", nil, typed("has_captured_ref: bool = false")},
		{"OptimizeDataset", "Gives a dataset that may be rewritten.", []string{"optimizations: string"}, append(typed(), configs)},
		{"OptimizeDatasetV2", "Gives a dataset that may be rewritten.",
			[]string{"optimizations_enabled: string", "optimizations_disabled: string", "optimizations_default: string"}, append(typed(), configs)},
		{"LatencyStatsDataset", "Gives a dataset whose latencies may be recorded.", []string{"tag: string"}, typed()},
		{"BytesProducedStatsDataset", "Gives a dataset whose sizes may be recorded.", []string{"tag: string"}, typed()},
		{"NonSerializableDataset", "Gives a dataset whose iterators need not be saved.", nil, typed()},
	} {
		rank, kind := 0, "scalar"
		if strings.HasPrefix(p.name, "Optimize") {
			rank, kind = 1, "vector"
		}
		registerStage(p.name, p.doc, p.in, p.attrs, func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			for _, budget := range []string{"cpu_budget", "ram_budget"} {
				if p.name == "ModelDataset" && n.Attrs.Int(budget) < 0 {
					return nil, status.InvalidArgumentf("%s budget must be positive but is %d.", strings.ToUpper(budget[:3]), n.Attrs.Int(budget))
				}
			}
			for i, arg := range p.in {
				name, _, _ := strings.Cut(arg, ":")
				t := ctx.Input(1 + i)
				if t.Rank() != rank {
					return nil, status.InvalidArgumentf("%s must be a %s", name, kind)
				}
				if t.DType() == tensor.Int64 && tensor.Value[int64](t) < 0 {
					return nil, status.InvalidArgumentf("`%s` must be >= 0", name)
				}
			}
			return &passDataset{s}, nil
		})
	}
}

// passDataset has the elements of its input. What it asks for besides is the business of Go's
// scheduler.
type passDataset struct{ stage }

func (d *passDataset) iterate(r *run) (iterator, error) { return d.input.iterate(r) }
