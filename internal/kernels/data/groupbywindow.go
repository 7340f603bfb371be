package data

import (
	"errors"
	"maps"
	"slices"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("GroupByWindowDataset", "Creates a dataset that groups elements by key into windows and concatenates the datasets that reduce_func returns for them.",
		[]string{"key_func_other_arguments: Tkey_func_other_arguments", "reduce_func_other_arguments: Treduce_func_other_arguments",
			"window_size_func_other_arguments: Twindow_size_func_other_arguments"},
		withSpecAndMetadata("key_func: func", "reduce_func: func", "window_size_func: func", "Tkey_func_other_arguments: list(type) >= 0",
			"Treduce_func_other_arguments: list(type) >= 0", "Twindow_size_func_other_arguments: list(type) >= 0"), newGroups)
}

type groupsDataset struct {
	stage
	key, reduce, size *captured
}

func newGroups(n *node, ctx *kernel.Context, s stage) (_ dataset, err error) {
	d := &groupsDataset{stage: s}
	for name, f := range map[string]**captured{"key_func": &d.key, "reduce_func": &d.reduce, "window_size_func": &d.size} {
		if *f, err = n.function(ctx, name, name+"_other_arguments"); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *groupsDataset) cardinality() int64 { return d.infiniteOrUnknown() }

func (d *groupsDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &groupsIterator{source: src, d: d, groups: map[int64]*group{}}, err
}

// group is the elements of one key that are not in a window yet.
type group struct {
	size  int64
	elems []element
}

type groupsIterator struct {
	source
	d         *groupsDataset
	groups    map[int64]*group
	meter     membudget.Meter // of groups
	keys      []int64         // of the groups that are still to come, at the end of the input
	window    []element       // elements of current
	key       int64           // key of the window
	current   iterator        // nil if there is none
	exhausted bool
}

func (it *groupsIterator) next(r *run) (element, error) {
	for {
		if it.current != nil {
			e, err := it.current.next(r)
			if !errors.Is(err, errEnd) {
				return e, err
			}
			it.current, it.window = nil, nil
		}
		if err := it.advance(r); err != nil {
			return nil, err
		}
	}
}

// advance reads until a window is complete. At the end of the input, incomplete windows follow in
// the order of their keys.
func (it *groupsIterator) advance(r *run) error {
	for !it.exhausted {
		e, err := it.pull(r)
		if errors.Is(err, errEnd) {
			it.exhausted = true
			break
		}
		if err != nil {
			return err
		}
		key, g, err := it.group(r, e)
		if err != nil {
			return err
		}
		g.elems = membudget.Append(g.elems, e)
		if int64(len(g.elems)) == g.size {
			return it.flush(r, key, g)
		}
	}
	if it.keys == nil {
		it.keys = membudget.MakeCap[int64](len(it.groups))
		it.keys = slices.AppendSeq(it.keys, maps.Keys(it.groups))
		slices.Sort(it.keys)
	}
	for len(it.keys) > 0 {
		key := it.keys[0]
		it.keys = it.keys[1:]
		if g := it.groups[key]; len(g.elems) > 0 {
			return it.flush(r, key, g)
		}
	}
	return errEnd
}

// groupMemory is about the memory of a group with one element, which may share its tensors, in
// bytes.
const groupMemory = 160

// group returns the key and the group of an element.
func (it *groupsIterator) group(r *run, e element) (int64, *group, error) {
	key, err := callForInt64(it.d.key, r, e.retain(), "key_func")
	if err != nil {
		return 0, nil, err
	}
	if g := it.groups[key]; g != nil {
		return key, g, nil
	}
	size, err := callForInt64(it.d.size, r, element{tensor.Scalar(key)}, "window_size_func")
	if err == nil && size <= 0 {
		err = status.InvalidArgumentf("Window size must be greater than zero, but got %d.", size)
	}
	if err != nil {
		return 0, nil, err
	}
	it.meter.MustTakeEntry(groupMemory)
	g := &group{size: size}
	it.groups[key] = g
	return key, g, nil
}

// callForInt64 calls a function that returns a number.
func callForInt64(f *captured, r *run, args element, name string) (int64, error) {
	got, err := f.call(r, args)
	if err != nil {
		return 0, err
	}
	defer got.release()
	if len(got) != 1 || got[0].DType() != tensor.Int64 || got[0].NumElements() != 1 {
		return 0, status.InvalidArgumentf("`%s` must return a scalar int64.", name)
	}
	return tensor.Values[int64](&got[0])[0], nil
}

func (it *groupsIterator) flush(r *run, key int64, g *group) error {
	it.key, it.window = key, g.elems
	g.elems = nil
	var err error
	it.current, err = it.open(r)
	return err
}

// open calls the reduce function for the window and returns an iterator over its result.
func (it *groupsIterator) open(r *run) (iterator, error) {
	w := &listDataset{spec: *it.d.input.elementSpec(), all: it.window}
	d, err := it.d.reduce.variant(r, element{tensor.Scalar(it.key), wrap(w)})
	if err != nil {
		return nil, status.Internalf("Got error code %v and message: {\n%s\n} \nfrom running user-defined function %s: ",
			status.CodeOf(err), err, it.d.reduce.Op().Name)
	}
	defer d.Release()
	made, err := datasetOf(&d)
	if err != nil {
		return nil, err
	}
	return open(r, made)
}

func (it *groupsIterator) state(a *archive) {
	if a.loading {
		it.keys = nil
	}
	a.bool(&it.exhausted)
	a.int(&it.key)
	a.elements(&it.window)
	keys := slices.Sorted(maps.Keys(it.groups))
	for i := range a.count(len(keys)) {
		var key int64
		g := &group{}
		if !a.loading {
			key, g = keys[i], it.groups[keys[i]]
		}
		a.int(&key)
		a.int(&g.size)
		a.elements(&g.elems)
		//sizedmake:ok an element each, or more
		it.groups[key] = g
	}
	it.source.state(a)
	a.iterator(&it.current, func() (iterator, error) { return it.open(a.run) })
}
