package data

import (
	"errors"
	"math/rand/v2"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/format/record"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	in := []string{"input_dataset: variant", "path: string", "shard_func_other_args: Tshard_func_args"}
	attrs := []string{"compression: string = ''", "shard_func: func", "use_shard_func: bool = true", "Tshard_func_args: list(type) >= 0"}
	kernel.RegisterNew(opdef.Def{
		Name: "SaveDataset", Doc: "Saves the elements of a dataset to files.", In: in, Attrs: attrs, Stateful: true, Class: opdef.FilesWrite,
	}, iterating(saveDataset))
	register(opdef.Def{
		Name: "SaveDatasetV2", Doc: "Creates a dataset that saves the elements of its input to files as they are read.",
		In: in, Attrs: append(attrs[:4:4], withSpec()...), Stateful: true, Class: opdef.FilesWrite,
	}, func(n *node, ctx *kernel.Context) (dataset, error) { return newSave(n, ctx) })
	register(opdef.Def{
		Name: "LoadDataset", Doc: "Creates a dataset of the elements that SaveDataset wrote. reader_func combines the datasets of the shards.",
		In:    []string{"path: string", "reader_func_other_args: Treader_func_args"},
		Attrs: append(withSpec(), "compression: string = ''", "reader_func: func", "Treader_func_args: list(type) >= 0"), Stateful: true, Class: opdef.FilesRead,
	}, newLoad)
}

// savingDataset saves the elements that are read from it.
type savingDataset struct {
	stage
	files       fileio.Files
	path, hash  string // directory of the dataset; fingerprint of a snapshot
	compression record.Compression
	shard       *captured // returns the shard of an element; nil for one shard
}

func newSave(n *node, ctx *kernel.Context) (*savingDataset, error) {
	input, err := datasetOf(ctx.Input(0))
	if err != nil {
		return nil, err
	}
	d := &savingDataset{stage: stage{input.elementSpec(), input}, files: n.Files(), compression: record.Compression(n.Attrs.String("compression"))}
	if d.path, err = scalar[string](n, ctx, "path"); err != nil {
		return nil, err
	}
	if n.Attrs.Bool("use_shard_func") {
		d.shard, err = n.function(ctx, "shard_func", "shard_func_other_args")
	}
	return d, err
}

func saveDataset(n *node, ctx *kernel.Context, r *run) error {
	d, err := newSave(n, ctx)
	if err != nil {
		return err
	}
	return each(r, d, func(e element) error {
		e.release()
		return nil
	})
}

func (d *savingDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	if err != nil {
		return nil, err
	}
	it := &savingIterator{source: src, d: d, run: rand.Int64()}
	// for a run that ends before the end of the input
	it.cancelCleanup = r.cleanups.add(func() { _ = it.to.close() })
	return it, nil
}

type savingIterator struct {
	source
	d             *savingDataset
	run, n        int64
	started       bool // writing has started
	exhausted     bool
	to            savedWriter
	cancelCleanup func()
}

func (it *savingIterator) next(r *run) (element, error) {
	if it.exhausted {
		return nil, errEnd
	}
	if !it.started {
		it.to.files, it.to.path, it.to.hash, it.to.run, it.to.compression = it.d.files, it.d.path, it.d.hash, formatRunID(uint64(it.run)), it.d.compression
		if err := it.to.begin(it.d.types); err != nil {
			return nil, err
		}
		it.started = true
	}
	e, err := it.input.next(r)
	if errors.Is(err, errEnd) {
		if err := it.finish(); err != nil {
			return nil, err
		}
		return nil, errEnd
	}
	if err != nil {
		return nil, err
	}
	shard := int64(0)
	if it.d.shard != nil {
		shard, err = callForInt64(it.d.shard, r, e.retain(), "shard_func")
	}
	if err == nil {
		err = it.to.write(shard, e)
	}
	if err != nil {
		e.release()
		return nil, err
	}
	it.n++
	return e, nil
}

func (it *savingIterator) finish() error {
	it.cancelCleanup()
	if err := it.to.close(); err != nil {
		return err
	}
	it.exhausted = true
	return it.to.note(it.d.types, it.n, true)
}

func (it *savingIterator) state(a *archive) {
	if !a.loading && it.started && !it.exhausted {
		if err := it.to.close(); err != nil {
			a.fail(err)
		}
	}
	a.int(&it.run)
	a.int(&it.n)
	a.int(&it.to.part)
	a.bool(&it.exhausted)
	it.source.state(a)
	if it.to.part < 0 {
		a.fail(status.InvalidArgumentf("the saved state of the iterator has an invalid part: %d", it.to.part))
	}
}

// loadDataset contains the elements of a saved dataset.
type loadDataset struct {
	spec
	files                  fileio.Files
	path, run, compression string
	n                      int64
	join                   *captured // reader_func: combines the datasets of the shards
}

func newLoad(n *node, ctx *kernel.Context) (dataset, error) {
	path, err := scalar[string](n, ctx, "path")
	if err != nil {
		return nil, err
	}
	m, err := readMetadata(n.Files().In(ctx.Context()), path)
	if err == nil && m == nil {
		err = status.NotFoundf("Could not find metadata file [%s]", path)
	}
	if err == nil {
		err = checkVersion(m)
	}
	if err != nil {
		return nil, err
	}
	join, err := n.function(ctx, "reader_func", "reader_func_other_args")
	return &loadDataset{n.spec(), n.Files(), path, m.GetRunId(), n.Attrs.String("compression"), m.GetNumElements(), join}, err
}

func (d *loadDataset) cardinality() int64 { return d.n }

func (d *loadDataset) iterate(r *run) (iterator, error) {
	shards, err := shardsOf(d.files, d.spec, d.path, d.run, d.compression, 0)
	if err != nil {
		return nil, err
	}
	all := &listDataset{spec: spec{[]tensor.DType{tensor.Variant}, []tensor.PartialShape{tensor.MakePartial()}}, all: shards}
	return d.join.iterate(r, element{wrap(all)})
}
