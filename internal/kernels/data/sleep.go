package data

import (
	"time"

	"github.com/weft-ml/weft/kernel"
)

func init() {
	registerStage("SleepDataset", "Creates a dataset that sleeps before it returns each element of its input.", []string{"sleep_microseconds: int64"}, withSpec(),
		func(n *node, ctx *kernel.Context, s stage) (dataset, error) {
			pause, err := scalar[int64](n, ctx, "sleep_microseconds")
			return &sleepDataset{s, time.Duration(pause) * time.Microsecond}, err
		})
}

type sleepDataset struct {
	stage
	pause time.Duration
}

func (d *sleepDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &sleepIterator{src, d.pause}, err
}

type sleepIterator struct {
	source
	pause time.Duration
}

func (it *sleepIterator) next(r *run) (element, error) {
	timer := time.NewTimer(it.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return it.input.next(r)
	case <-r.ctx.Context().Done():
		return nil, r.cancelled()
	}
}
