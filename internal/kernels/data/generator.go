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
	initFunc, nextFunc, finalizeFunc *captured
}

func newGenerator(n *node, ctx *kernel.Context) (_ dataset, err error) {
	d := &generatorDataset{spec: n.spec()}
	for name, f := range map[string]**captured{"init_func": &d.initFunc, "next_func": &d.nextFunc, "finalize_func": &d.finalizeFunc} {
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
	started       bool
	finished      bool
	initState     element // state returned by init_func
	cancelCleanup func()
}

func (it *generatorIterator) next(r *run) (element, error) {
	if it.finished {
		return nil, errEnd
	}
	if !it.started {
		var err error
		if it.initState, err = it.d.initFunc.call(r, nil); err != nil {
			return nil, err
		}
		it.started = true
		ahead := r.ahead()
		// The cleanup calls finalize_func after the lifetime has ended.
		ahead.ctx.Step.Context = context.WithoutCancel(r.lifetime)
		it.cancelCleanup = r.cleanups.add(func() { _ = guarded(func() error { return it.finish(ahead) }) })
	}
	e, err := it.d.nextFunc.call(r, it.initState.retain())
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
	initState := it.initState
	it.initState = nil
	ignored, err := it.d.finalizeFunc.call(r, initState)
	ignored.release()
	return err
}

func (it *generatorIterator) state(a *archive) {
	a.fail(status.Unimplementedf("GeneratorDataset does not support checkpointing."))
}
