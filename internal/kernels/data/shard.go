package data

import (
	"errors"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerStage("ShardDataset", "Creates a dataset of every num_shards-th element of its input, starting at index.",
		[]string{"num_shards: int64", "index: int64"}, append([]string{"require_non_empty: bool = false"}, withSpecAndMetadata()...), newShard)
}

// shardHint is the number of shards that marks a placeholder. Sharding by hints replaces the
// parameters of such a shard.
const shardHint = -1

type shardDataset struct {
	stage
	shards, index   int64
	requireNonEmpty bool // fail if a shard has no element
}

func newShard(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	v, err := n.scalars(ctx, "num_shards", "index")
	if err != nil {
		return nil, err
	}
	if v[0] <= 0 && v[0] != shardHint {
		return nil, status.InvalidArgumentf("Number of shards must be greater than zero (currently num_shards = %d).", v[0])
	}
	if (v[1] < 0 || v[1] >= v[0]) && v[0] != shardHint {
		return nil, status.InvalidArgumentf("Index must be between 0 and %d (currently index = %d).", v[0]-1, v[1])
	}
	return &shardDataset{s, v[0], v[1], n.Attrs.Bool("require_non_empty")}, nil
}

func (d *shardDataset) cardinality() int64 {
	n := d.input.cardinality()
	if n < 0 || d.shards == shardHint {
		return n
	}
	count := n / d.shards
	if d.index < n%d.shards {
		count++
	}
	return count
}

func (d *shardDataset) at(r *run, i int64) (element, error) {
	return atIndex(r, d.input, d.index+i*d.shards)
}

func (d *shardDataset) iterate(r *run) (iterator, error) {
	if d.shards == shardHint {
		return nil, status.FailedPreconditionf("`tf.data.Dataset.shard(SHARD_HINT, ...)` can only be used in " +
			"`tf.distribute.Strategy.experimental_distribute_dataset()` with `tf.data.experimental.AutoShardPolicy.HINT` policy, or " +
			"tf.data service with `tf.data.experimental.service.ShardingPolicy.HINT` processing mode.")
	}
	src, err := d.begin(r)
	return &shardIterator{source: src, d: d}, err
}

type shardIterator struct {
	source
	d *shardDataset
	i int64 // index of the next input element
}

func (it *shardIterator) next(r *run) (element, error) {
	d := it.d
	for {
		e, err := it.pull(r)
		if err != nil {
			return nil, err
		}
		it.i++
		if (it.i-1)%d.shards != d.index {
			e.release()
			continue
		}
		if d.requireNonEmpty {
			err = it.checkOthers(r)
		}
		if err != nil {
			e.release()
			return nil, err
		}
		return e, nil
	}
}

// checkOthers checks, at the first element of the shard, that the other shards have an element too.
func (it *shardIterator) checkOthers(r *run) error {
	for found := it.i; it.i < it.d.shards; it.i++ {
		e, err := it.pull(r)
		if errors.Is(err, errEnd) {
			return status.InvalidArgumentf("Could not apply FILE based sharding: the dataset only has %d file(s), which is not enough for "+
				"the required %d shards/workers. If you are using datasets with distribution strategy, consider setting the auto sharding "+
				"policy to either DATA or OFF using the `experimental_distribute.auto_shard_policy` option of `tf.data.Options()`. Or, "+
				"split your input files into a larger number of small files such that number of files is greater than number of "+
				"shards/workers.", found, it.d.shards)
		}
		if err != nil {
			return err
		}
		e.release()
	}
	return nil
}

func (it *shardIterator) state(a *archive) {
	a.int(&it.i)
	it.source.state(a)
}
