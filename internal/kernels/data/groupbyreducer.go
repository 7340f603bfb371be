package data

import (
	"errors"
	"maps"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	parts := []string{"key_func", "init_func", "reduce_func", "finalize_func"}
	var in, attrs []string
	for _, f := range parts {
		in = append(in, f+"_other_arguments: T"+f+"_other_arguments")
		attrs = append(attrs, f+": func")
	}
	for _, f := range parts {
		attrs = append(attrs, "T"+f+"_other_arguments: list(type) >= 0")
	}
	register(opdef.Def{
		Name: "GroupByReducerDataset", Doc: "Creates a dataset that groups elements by key and reduces each group to one element, in the order of the keys.",
		In: append([]string{"input_dataset: variant"}, in...), Attrs: withSpec(attrs...), Stateful: true,
	}, newReducer)
}

// reducerDataset contains one element for each key.
type reducerDataset struct {
	stage
	key, start, reduce, finish *captured
}

func newReducer(n *node, ctx *kernel.Context) (_ dataset, err error) {
	d := &reducerDataset{}
	if d.stage, err = n.stageOf(ctx); err != nil {
		return nil, err
	}
	for name, f := range map[string]**captured{"key_func": &d.key, "init_func": &d.start, "reduce_func": &d.reduce, "finalize_func": &d.finish} {
		if *f, err = n.function(ctx, name, name+"_other_arguments"); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *reducerDataset) cardinality() int64 { return unknown }

func (d *reducerDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &reducerIterator{source: src, d: d, states: map[int64]element{}}, err
}

type reducerIterator struct {
	source
	d         *reducerDataset
	exhausted bool // the input is exhausted
	states    map[int64]element
	// keys of the states that are still to come, in order; set when the input is exhausted
	keys []int64
}

func (it *reducerIterator) next(r *run) (element, error) {
	for !it.exhausted {
		e, err := it.pull(r)
		if errors.Is(err, errEnd) {
			it.exhausted = true
			break
		}
		if err != nil {
			return nil, err
		}
		if err := it.add(r, e); err != nil {
			return nil, err
		}
	}
	if len(it.states) == 0 {
		return nil, errEnd
	}
	if len(it.keys) != len(it.states) {
		it.keys = membudget.MakeCap[int64](len(it.states))
		it.keys = slices.AppendSeq(it.keys, maps.Keys(it.states))
		slices.Sort(it.keys)
	}
	key := it.keys[0]
	it.keys = it.keys[1:]
	state := it.states[key]
	delete(it.states, key)
	return it.d.finish.call(r, state)
}

// add applies the reduction to the state of the element's key.
func (it *reducerIterator) add(r *run, e element) error {
	key, err := callForInt64(it.d.key, r, e.retain(), "key_func")
	if err != nil {
		e.release()
		return err
	}
	state, ok := it.states[key]
	if !ok {
		if state, err = it.d.start.call(r, element{tensor.Scalar(key)}); err != nil {
			e.release()
			return err
		}
	}
	it.states[key], err = it.d.reduce.call(r, slices.Concat(state, e))
	if err != nil {
		delete(it.states, key)
	}
	return err
}

func (it *reducerIterator) state(a *archive) {
	a.bool(&it.exhausted)
	it.keys = nil
	keys := slices.Sorted(maps.Keys(it.states))
	for i := range a.count(len(keys)) {
		var key int64
		var state element
		if !a.loading {
			key, state = keys[i], it.states[keys[i]]
		}
		a.int(&key)
		a.element(&state)
		//sizedmake:ok an element each
		it.states[key] = state
	}
	it.source.state(a)
}
