package data

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// parallelInterleave holds the parameters of parallel interleaving.
type parallelInterleave struct {
	order  determinism
	calls  int // maximum number of datasets read in parallel
	buffer int // maximum number of buffered elements per dataset
}

func newParallelInterleave(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	d, err := n.interleave(ctx, s)
	if err != nil {
		return nil, err
	}
	p := &parallelInterleave{calls: int(min(d.cycle, maxCalls)), buffer: defaultAhead}
	switch {
	case n.Op.Name == "SloppyInterleaveDataset":
		p.order = orderFree
	case n.hasArg("sloppy"):
		p.order, err = n.sloppyInput(ctx)
	default:
		p.order, err = n.determinism()
	}
	if err != nil {
		return nil, err
	}
	if n.hasArg("num_parallel_calls") {
		v, err := scalar[int64](n, ctx, "num_parallel_calls")
		switch {
		case err != nil:
			return nil, err
		case v <= 0 && v != autotune:
			return nil, status.InvalidArgumentf("num_parallel_calls must be greater than zero.")
		case v != autotune:
			p.calls = int(min(v, int64(p.calls)))
		}
	}
	if n.hasArg("buffer_output_elements") {
		v, err := scalar[int64](n, ctx, "buffer_output_elements")
		if err != nil {
			return nil, err
		}
		if v > 0 {
			p.buffer = int(min(v, maxCalls))
		}
	}
	d.parallel = p
	return d, nil
}
