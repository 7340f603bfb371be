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
		{"ModelDataset", "Creates a dataset whose parallelism may be tuned.", nil,
			withSpec("algorithm: int = 0", "cpu_budget: int = 0", "ram_budget: int = 0")},
		{"MaxIntraOpParallelismDataset", "Creates a dataset that limits the intra-op parallelism of its functions.", []string{"max_intra_op_parallelism: int64"}, withSpec()},
		{"PrivateThreadPoolDataset", "Creates a dataset whose functions run on a private thread pool.", []string{"num_threads: int64"}, withSpec()},
		{"FinalizeDataset", "Creates a dataset that applies the options of its input.", nil, withSpec("has_captured_ref: bool = false")},
		{"OptimizeDataset", "Creates a dataset whose graph may be rewritten.", []string{"optimizations: string"}, append(withSpec(), configs)},
		{"OptimizeDatasetV2", "Creates a dataset whose graph may be rewritten.",
			[]string{"optimizations_enabled: string", "optimizations_disabled: string", "optimizations_default: string"}, append(withSpec(), configs)},
		{"NonSerializableDataset", "Creates a dataset whose iterators need not be saved.", nil, withSpec()},
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

// passDataset contains the elements of its input. Its parameters concern scheduling, which Go's
// scheduler does.
type passDataset struct{ stage }

func (d *passDataset) iterate(r *run) (iterator, error) { return d.input.iterate(r) }
