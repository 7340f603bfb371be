package data

import (
	"slices"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	register(opdef.Def{
		Name: "MatchingFilesDataset", Doc: "Creates a dataset of the sorted names of the files that match patterns.",
		In: []string{"patterns: string"}, Stateful: true, Class: opdef.FilesRead,
	}, func(n *node, ctx *kernel.Context) (dataset, error) {
		in := ctx.Input(0)
		if in.Rank() > 1 {
			return nil, status.InvalidArgumentf("`patterns` must be a scalar or a vector.")
		}
		return &matchingDataset{
			spec:     spec{[]tensor.DType{tensor.String}, []tensor.PartialShape{tensor.MakePartial()}},
			files:    n.Files(),
			patterns: slices.Clone(tensor.Values[string](in)),
		}, nil
	})
}

type matchingDataset struct {
	spec
	files    fileio.Files
	patterns []string
}

func (d *matchingDataset) cardinality() int64 { return unknown }

// iterate lists the files. A file that matches several patterns is listed once for each.
func (d *matchingDataset) iterate(r *run) (iterator, error) {
	list := &listDataset{spec: d.spec}
	var names []string
	var meter membudget.Meter // a file may match many patterns
	const tensorSize = 256    // of a scalar, in bytes
	for _, pattern := range d.patterns {
		found, err := d.files.In(r.ctx.Context()).Match(pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			meter.MustTake(len(name) + tensorSize)
		}
		names = membudget.AppendAll(names, found...)
	}
	slices.Sort(names)
	for _, name := range names {
		list.all = membudget.Append(list.all, element{tensor.Scalar(name)})
	}
	if len(names) == 0 && len(d.patterns) > 0 {
		return nil, status.NotFoundf("Don't match any pattern of %q", d.patterns)
	}
	return &matchingIterator{listIterator{d: list}}, nil
}

// matchingIterator saves the names as well, because the files may differ when it is restored.
type matchingIterator struct{ listIterator }

func (it *matchingIterator) state(a *archive) {
	a.elements(&it.d.all)
	it.listIterator.state(a)
}
