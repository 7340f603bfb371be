package parsing

import (
	"github.com/weft-ml/weft/internal/opkit/shapefn"
	"github.com/weft-ml/weft/opdef"
)

// outputs sets the shapes of outputs in order.
type outputs struct {
	c    *opdef.ShapeContext
	next int
}

func (o *outputs) put(n int, s shapefn.Shape) {
	for range n {
		o.c.Out[o.next] = s
		o.next++
	}
}

// sparse sets the shapes of n sparse features. Each record has the given rank.
func (o *outputs) sparse(n int, records shapefn.Shape, rank int64) {
	if records.RankKnown() {
		rank += int64(records.Rank())
	} else {
		rank = shapefn.Unknown
	}
	o.put(n, shapefn.Of(shapefn.Unknown, rank))
	o.put(n, shapefn.Of(shapefn.Unknown))
	o.put(n, shapefn.Of(rank))
}

func (o *outputs) dense(features []feature, records shapefn.Shape) {
	for _, f := range features {
		o.put(1, shapefn.Concat(records, f.shape))
	}
}

// splits returns the shape of the row splits of the records.
func splits(records shapefn.Shape) shapefn.Shape {
	if records.Rank() == 1 {
		return shapefn.Of(shapefn.Add(records.Dim(0), 1))
	}
	return shapefn.Of(shapefn.Unknown)
}

func (o *outputs) ragged(n int, records shapefn.Shape) {
	o.put(n, shapefn.Of(shapefn.Unknown))
	o.put(n, splits(records))
}

func exampleShape(version int) opdef.ShapeFn {
	rank := opdef.WithRank
	if version == 2 {
		rank = opdef.WithRankAtMost
	}
	return func(c *opdef.ShapeContext) error {
		w, err := exampleWanted(c.Attrs, version)
		if err != nil {
			return err
		}
		records, err := rank(c.In[0], 1)
		if err != nil {
			return err
		}
		if _, err := rank(c.In[1], 1); err != nil {
			return err
		}
		o := &outputs{c: c}
		o.sparse(len(w.sparse), records, 1)
		o.dense(w.dense, records)
		o.ragged(len(w.ragged), records)
		return nil
	}
}

func singleExampleShape(c *opdef.ShapeContext) error {
	w, _, err := singleWanted(c.Attrs)
	if err != nil {
		return err
	}
	o := &outputs{c: c}
	o.sparse(len(w.sparse), shapefn.Of(), 1)
	o.dense(w.dense, shapefn.Of())
	return shapefn.CheckRanks(c, 0, 0)
}

func sequenceShape(version int) opdef.ShapeFn {
	return func(c *opdef.ShapeContext) error {
		context, lists, err := newSequenceWanted(c.Attrs, version)
		if err != nil {
			return err
		}
		records, err := sequenceRecords(c, version)
		if err != nil {
			return err
		}
		o := &outputs{c: c}
		o.sparse(len(context.sparse), records, 1)
		o.dense(context.dense, records)
		o.ragged(len(context.ragged), records)
		o.sparse(len(lists.sparse), records, 2)
		o.dense(lists.dense, shapefn.Concat(records, shapefn.Of(shapefn.Unknown)))
		if version != 0 {
			o.put(len(lists.dense), records)
		}
		o.ragged(len(lists.ragged), records)
		o.put(len(lists.ragged), shapefn.Of(shapefn.Unknown))
		return nil
	}
}

// sequenceRecords checks the first inputs and returns the shape of the records.
func sequenceRecords(c *opdef.ShapeContext, version int) (shapefn.Shape, error) {
	switch version {
	case 0:
		return shapefn.Of(), shapefn.CheckRanks(c, 0, 0, 1)
	case 1:
		records, err := opdef.WithRank(c.In[0], 1)
		if err == nil {
			err = shapefn.CheckRanks(c, 1, 1)
		}
		return records, err
	}
	records, err := opdef.WithRankAtMost(c.In[0], 1)
	if err == nil {
		_, err = opdef.WithRankAtMost(c.In[1], 1)
	}
	return records, err
}
