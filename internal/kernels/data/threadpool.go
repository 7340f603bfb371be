package data

import (
	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	for _, name := range []string{"ThreadPoolHandle", "ExperimentalThreadPoolHandle"} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: "Creates a thread pool for the functions of datasets.", Out: []string{"handle: resource"},
			Attrs: []string{
				"num_threads: int", "max_intra_op_parallelism: int = 1", "display_name: string", "container: string = ''", "shared_name: string = ''",
			},
			Stateful: true, Shape: opdef.ScalarShape,
		}, makeThreadPool)
	}
	registerStage("ThreadPoolDataset", "Creates a dataset whose functions run on a thread pool.", []string{"thread_pool: resource"}, withSpec(),
		func(_ *node, ctx *kernel.Context, s stage) (dataset, error) {
			_, err := resource.Find[*threadPool](ctx, 1)
			return &passDataset{s}, err
		})
}

// threadPool is the thread pool resource. It has no threads: Go's scheduler assigns the work.
type threadPool struct{}

// TypeName returns TensorFlow's name of the resource.
func (*threadPool) TypeName() string {
	return "N10tensorflow4data12experimental12_GLOBAL__N_118ThreadPoolResourceE"
}

// maxThreads is TensorFlow's limit.
const maxThreads = 1 << 16

func makeThreadPool(c *kernel.Construction) (kernel.Kernel, error) {
	switch n := c.Attrs.Int("num_threads"); {
	case n < 0:
		return nil, status.InvalidArgumentf("`num_threads` must be >= 0")
	case n >= maxThreads:
		return nil, status.InvalidArgumentf("`num_threads` must be < %d", maxThreads)
	}
	return resource.Maker[*threadPool]{
		Create: func(*kernel.Context, string) (*threadPool, error) { return &threadPool{}, nil },
	}.Kernel(c)
}
