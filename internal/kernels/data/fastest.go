package data

import (
	"slices"
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	register(opdef.Def{
		Name: "ChooseFastestDataset",
		Doc: "Creates a dataset that chooses the fastest of several datasets with the same elements. The first num_experiments elements " +
			"are read from all of them, the others from the fastest.",
		In: []string{"input_datasets: N * variant"}, Attrs: withSpec("N: int >= 2", "num_experiments: int"),
	}, newFastest)
}

type fastestDataset struct {
	spec
	inputs      []dataset
	n           int64 // cardinality
	experiments int64
}

func newFastest(n *node, ctx *kernel.Context) (dataset, error) {
	inputs, err := datasetsOf(ctx, 0, ctx.NumInputs())
	if err != nil {
		return nil, err
	}
	d := &fastestDataset{n.spec(), inputs, inputs[0].cardinality(), int64(n.Attrs.Int("num_experiments"))}
	if err := d.join("ChooseFastestDataset", inputs); err != nil {
		return nil, err
	}
	for i, in := range inputs[1:] {
		switch size := in.cardinality(); {
		case d.n == unknown:
			d.n = size
		case size != d.n && size != unknown:
			return nil, status.InvalidArgumentf("All inputs to ChooseFastestDataset must have compatible cardinalities. Input %d has cardinality: "+
				"%d, while all prior inputs have cardinality: %d.", i+1, size, d.n)
		}
	}
	return d, nil
}

// join widens s to a spec that covers the elements of all inputs.
func (s *spec) join(op string, inputs []dataset) error {
	//sizedmake:ok components of an element
	s.shapes = slices.Clone(s.shapes)
	for i := 1; i < len(inputs); i++ {
		in := inputs[i].elementSpec()
		if checkTypes(s.types, in.types) != nil {
			return status.InvalidArgumentf("All inputs to %s must have the same output types. Input %d has output types: %s. Expected: %s.",
				op, i, opdef.JoinTypes(in.types), opdef.JoinTypes(s.types))
		}
		if len(s.shapes) != len(in.shapes) {
			return status.InvalidArgumentf("All inputs to %s must have compatible outputs. Input %d has %d components. Expected to have %d components.",
				op, i, len(in.shapes), len(s.shapes))
		}
		for c, shape := range s.shapes {
			merged, ok := shape.Merge(in.shapes[c])
			if !ok {
				return status.InvalidArgumentf("All inputs to %s must have compatible output shapes. Component %d of input %d has shape: %v. "+
					"Expected to be compatible with shape: %v.", op, c, i, in.shapes[c], shape)
			}
			s.shapes[c] = merged
		}
	}
	return nil
}

func (d *fastestDataset) cardinality() int64 { return d.n }

func (d *fastestDataset) iterate(r *run) (iterator, error) {
	it := &fastestIterator{d: d, inputs: membudget.Make[iterator](len(d.inputs)), times: membudget.Make[time.Duration](len(d.inputs)), chosen: noChoice}
	for i, in := range d.inputs {
		var err error
		if it.inputs[i], err = open(r, in); err != nil {
			return nil, err
		}
	}
	return it, nil
}

type fastestIterator struct {
	d      *fastestDataset
	inputs []iterator // after the choice, only the chosen one
	times  []time.Duration
	tried  int64 // number of experiments done
	chosen int64 // index of the fastest input, or noChoice
}

// noChoice is the value of chosen before the fastest input is known.
const noChoice = -1

func (it *fastestIterator) next(r *run) (element, error) {
	if it.tried >= it.d.experiments {
		it.choose()
		return it.inputs[it.chosen].next(r)
	}
	if err := takeGoroutines(len(it.inputs)); err != nil {
		return nil, err
	}
	it.tried++
	results := membudget.Make[*result](len(it.inputs))
	for i, in := range it.inputs {
		p := newResult()
		results[i] = p
		go func() {
			start := time.Now()
			var e element
			err := guarded(func() (err error) {
				e, err = in.next(r)
				return err
			})
			it.times[i] += time.Since(start)
			p.set(e, err)
		}()
	}
	for _, p := range results[1:] {
		<-p.ended
		p.value.release()
	}
	<-results[0].ended
	return results[0].value, results[0].err
}

// choose selects the fastest input, unless one is chosen.
func (it *fastestIterator) choose() {
	if it.chosen != noChoice {
		return
	}
	it.chosen = 0
	for i, t := range it.times {
		if t < it.times[it.chosen] {
			it.chosen = int64(i)
		}
	}
	for i := range it.inputs {
		if int64(i) != it.chosen {
			it.inputs[i] = nil
		}
	}
}

func (it *fastestIterator) state(a *archive) {
	a.int(&it.tried)
	a.int(&it.chosen)
	if it.tried < 0 || it.chosen < noChoice || it.chosen >= int64(len(it.inputs)) {
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
		return
	}
	for i := range it.inputs {
		if it.chosen == noChoice || it.chosen == int64(i) {
			it.inputs[i].state(a)
		} else {
			it.inputs[i] = nil
		}
	}
}
