package data

import (
	"errors"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

func init() {
	registerStage("ShardDataset", "Makes a dataset of one in num_shards elements of another, from that at index on.",
		[]string{"num_shards: int64", "index: int64"}, append([]string{"require_non_empty: bool = false"}, described()...), newShard)
}

type shardDataset struct {
	stage
	shards, index int64
	whole         bool // every shard must have an element
}

func newShard(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	v, err := n.scalars(ctx, "num_shards", "index")
	if err != nil {
		return nil, err
	}
	if v[0] <= 0 {
		return nil, status.InvalidArgumentf("Number of shards must be greater than zero (currently num_shards = %d).", v[0])
	}
	if v[1] < 0 || v[1] >= v[0] {
		return nil, status.InvalidArgumentf("Index must be between 0 and %d (currently index = %d).", v[0]-1, v[1])
	}
	return &shardDataset{s, v[0], v[1], n.Attrs.Bool("require_non_empty")}, nil
}

func (d *shardDataset) cardinality() int64 {
	n := d.input.cardinality()
	if n < 0 {
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
	src, err := d.begin(r)
	return &shardIterator{source: src, d: d}, err
}

type shardIterator struct {
	source
	d *shardDataset
	i int64 // of the next element of the input
}

func (it *shardIterator) next(r *run) (element, error) {
	d := it.d
	for {
		e, err := it.input.next(r)
		if errors.Is(err, errEnd) && d.whole && it.i > 0 && it.i < d.shards {
			return nil, status.InvalidArgumentf("Could not apply FILE based sharding: the dataset only has %d file(s), which is not "+
				"enough for the required %d shards/workers.", it.i, d.shards)
		}
		if err != nil {
			return nil, err
		}
		it.i++
		if (it.i-1)%d.shards == d.index {
			return e, nil
		}
		e.release()
	}
}

func (it *shardIterator) state(a *archive) {
	a.int(&it.i)
	it.source.state(a)
}
