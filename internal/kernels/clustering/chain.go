package clustering

import (
	"github.com/weft-ml/weft/internal/numeric/philox"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterFunc(opdef.Def{
		Name: "KMC2ChainInitialization",
		Doc: "Returns the index of a point sampled by a Markov chain. distances are the distances of the points to the nearest center so far " +
			"(Bachem et al., Approximate K-Means++ in Sublinear Time, AAAI 2016).",
		In: []string{"distances: float32", "seed: int64"}, Out: []string{"index: int64"}, Shape: opdef.ScalarShape,
	}, chain)
}

func chain(ctx *kernel.Context) error {
	in := ctx.Input(0)
	if in.Rank() != 1 {
		return status.InvalidArgumentf("Input distances should be a vector.")
	}
	seed, err := scalar(ctx, 1, "seed")
	if err != nil {
		return err
	}
	distances := tensor.Values[float32](in)
	if len(distances) == 0 {
		return status.InvalidArgumentf("Expected distances_tensor.size() > 0.")
	}
	random := philox.NewWords(philox.New(uint64(seed), 0))
	at := 0
	for i, d := range distances[1:] {
		if d > random.Unit32()*distances[at] {
			at = i + 1
		}
	}
	ctx.SetOutput(0, tensor.Scalar(int64(at)))
	return nil
}
