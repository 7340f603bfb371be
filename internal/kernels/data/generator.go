package data

import (
	"context"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	register(opdef.Def{
		Name: "GeneratorDataset",
		Doc: "Creates a dataset of the results of next_func, which is called repeatedly with the state that init_func returned. An OutOfRange " +
			"error of next_func ends the dataset; then finalize_func is called.",
		In: []string{"init_func_other_args: Tinit_func_args", "next_func_other_args: Tnext_func_args", "finalize_func_other_args: Tfinalize_func_args"},
		Attrs: withSpecAndMetadata("init_func: func", "next_func: func", "finalize_func: func", "Tinit_func_args: list(type) >= 0",
			"Tnext_func_args: list(type) >= 0", "Tfinalize_func_args: list(type) >= 0"),
		Stateful: true,
	}, newGenerator)
}

type generatorDataset struct {
	spec
	first, more, last *captured
}

func newGenerator(n *node, ctx *kernel.Context) (_ dataset, err error) {
	d := &generatorDataset{spec: n.spec()}
	for name, f := range map[string]**captured{"init_func": &d.first, "next_func": &d.more, "finalize_func": &d.last} {
		if *f, err = n.function(ctx, name, name+"_other_args"); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *generatorDataset) cardinality() int64 { return unknown }

func (d *generatorDataset) iterate(*run) (iterator, error) { return &generatorIterator{d: d}, nil }

type generatorIterator struct {
	d             *generatorDataset
	begun         bool
	finished      bool
	given         element // state returned by init_func
	cancelCleanup func()
}

func (it *generatorIterator) next(r *run) (element, error) {
	if it.finished {
		return nil, errEnd
	}
	if !it.begun {
		var err error
		if it.given, err = it.d.first.call(r, nil); err != nil {
			return nil, err
		}
		it.begun = true
		ahead := r.ahead()
		// finalize_func is called after the lifetime has ended
		ahead.ctx.Step.Context = context.WithoutCancel(r.lifetime)
		it.cancelCleanup = r.cleanups.add(func() { _ = guarded(func() error { return it.finish(ahead) }) })
	}
	e, err := it.d.more.call(r, it.given.retain())
	if status.CodeOf(err) != status.OutOfRange {
		return e, err
	}
	it.finished = true
	it.cancelCleanup()
	if err := it.finish(r); err != nil {
		return nil, err
	}
	return nil, errEnd
}

// finish calls finalize_func.
func (it *generatorIterator) finish(r *run) error {
	given := it.given
	it.given = nil
	ignored, err := it.d.last.call(r, given)
	ignored.release()
	return err
}

func (it *generatorIterator) state(a *archive) {
	a.fail(status.Unimplementedf("GeneratorDataset does not support checkpointing."))
}
