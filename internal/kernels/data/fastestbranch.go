package data

import (
	"slices"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	registerStage("ChooseFastestBranchDataset",
		"Creates a dataset that applies the fastest of several functions from datasets to datasets to its input. The first "+
			"num_elements_per_branch elements of each function are used to choose.",
		[]string{"ratio_numerator: int64", "ratio_denominator: int64", "other_arguments: Targuments"},
		withSpec("Targuments: list(type) >= 0", "num_elements_per_branch: int >= 1", "branches: list(func) >= 1",
			"other_arguments_lengths: list(int) >= 1"), newFastestBranch)
}

// fastestBranchDataset returns ratio[0] elements for every ratio[1] elements of its input.
type fastestBranchDataset struct {
	stage
	branches []*captured
	ratio    [2]int64
	trial    int64 // number of elements of each branch before one is chosen
}

func newFastestBranch(n *node, ctx *kernel.Context, s stage) (dataset, error) {
	d := &fastestBranchDataset{stage: s, trial: int64(n.Attrs.Int("num_elements_per_branch"))}
	v, err := n.scalars(ctx, "ratio_numerator", "ratio_denominator")
	if err != nil {
		return nil, err
	}
	d.ratio = [2]int64{v[0], v[1]}
	switch {
	case v[0] <= 0:
		return nil, status.InvalidArgumentf("`ratio_numerator` must be greater than zero.")
	case v[1] <= 0:
		return nil, status.InvalidArgumentf("`ratio_denominator` must be greater than zero.")
	case d.trial%v[1] != 0:
		return nil, status.InvalidArgumentf("`num_elements_per_branch` must be divisible by `ratio_denominator`.")
	}
	last, err := n.inputs(ctx, "other_arguments")
	if err != nil {
		return nil, err
	}
	funcs, lengths := n.Attrs.Funcs("branches"), n.Attrs.Ints("other_arguments_lengths")
	if len(funcs) != len(lengths) {
		return nil, status.InvalidArgumentf("branches and other_arguments_lengths must have the same length.")
	}
	if n.Functions == nil {
		return nil, status.InvalidArgumentf("%s needs functions, but the graph has none", n.Op.Name)
	}
	for i, f := range funcs {
		k := lengths[i]
		if k < 0 || k > int64(len(last)) {
			return nil, status.InvalidArgumentf("other_arguments_lengths is %d for branch %d, but only %d arguments are left", k, i, len(last))
		}
		made, err := n.Functions.Instantiate(f)
		if err != nil {
			return nil, err
		}
		d.branches = append(d.branches, &captured{made, last[:k], n.Op.Name})
		last = last[k:]
	}
	return d, nil
}

func (d *fastestBranchDataset) cardinality() int64 {
	n := d.input.cardinality()
	if n < 0 {
		return n
	}
	return int64(float64(n) * float64(d.ratio[0]) / float64(d.ratio[1]))
}

func (d *fastestBranchDataset) iterate(r *run) (iterator, error) {
	src, err := d.begin(r)
	return &fastestBranchIterator{source: src, d: d, times: membudget.Make[[]time.Duration](len(d.branches))}, err
}

type fastestBranchIterator struct {
	source
	d *fastestBranchDataset
	// guards the input, which a branch with prefetching reads on a goroutine of its own
	mu     sync.Mutex
	times  [][]time.Duration
	branch int64 // index of the branch on trial; number of branches after the trials
	tried  int64 // number of elements read from the branch
	chosen int64
	at     iterator // iterator of the current branch; nil before its first element
}

func (it *fastestBranchIterator) next(r *run) (element, error) {
	trial := it.branch < int64(len(it.times))
	if it.at == nil {
		if !trial {
			it.choose()
		}
		var err error
		if it.at, err = it.begin(r); err != nil {
			return nil, err
		}
	}
	if !trial {
		return it.at.next(r)
	}
	start := time.Now()
	e, err := it.at.next(r)
	if it.tried > 0 { // the first element includes the cost of starting the branch
		it.times[it.branch] = append(it.times[it.branch], time.Since(start))
	}
	if it.tried++; it.tried >= it.d.trial {
		it.tried, it.at = 0, nil
		it.branch++
	}
	return e, err
}

// choose selects the branch whose 90th percentile of element times is the lowest.
func (it *fastestBranchIterator) choose() {
	var best time.Duration
	for i, times := range it.times {
		var slow time.Duration
		if len(times) > 0 {
			slices.Sort(times)
			slow = times[len(times)*9/10]
		}
		if i == 0 || slow <= best {
			it.chosen, best = int64(i), slow
		}
	}
}

// begin iterates over the current branch. A branch on trial reads only the input elements of its
// trial, the chosen one reads all that are left.
func (it *fastestBranchIterator) begin(r *run) (iterator, error) {
	branch := it.chosen
	var d dataset = &restDataset{spec: it.d.input.elementSpec(), it: it}
	if it.branch < int64(len(it.times)) {
		branch = it.branch
		d = &takeDataset{stage{spec: d.elementSpec(), input: d}, it.d.trial * it.d.ratio[0] / it.d.ratio[1]}
	}
	return it.d.branches[branch].iterate(r, element{tensor.Scalar(tensor.VariantValue{Value: d})})
}

func (it *fastestBranchIterator) state(a *archive) {
	it.source.state(a)
	a.int(&it.branch)
	a.int(&it.tried)
	a.int(&it.chosen)
	if n := int64(len(it.times)); it.branch < 0 || it.branch > n || it.chosen < 0 || it.chosen >= n {
		a.fail(status.InvalidArgumentf("the saved state of the iterator does not match the dataset"))
		return
	}
	a.iterator(&it.at, func() (iterator, error) { return it.begin(a.run) })
}

// restDataset holds the remaining input elements of an iterator. It supports one iteration.
type restDataset struct {
	*spec
	it      *fastestBranchIterator
	started sync.Once
}

func (d *restDataset) cardinality() int64 { return unknown }

func (d *restDataset) iterate(*run) (iterator, error) {
	first := false
	d.started.Do(func() { first = true })
	if !first {
		return nil, status.InvalidArgumentf("Cannot create more than one WrapperIterator per WrapperDataset. " +
			"Make sure the branches to ChooseFastestDataset do not expect the input to repeat.")
	}
	return &restIterator{d.it}, nil
}

type restIterator struct{ of *fastestBranchIterator }

func (it *restIterator) next(r *run) (element, error) {
	it.of.mu.Lock()
	defer it.of.mu.Unlock()
	return it.of.input.next(r)
}

// state does nothing: the iterator that owns the input saves it.
func (*restIterator) state(*archive) {}
