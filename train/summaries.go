package train

import (
	"github.com/weft-ml/weft/op"
)

// ScalarSummary adds a summary of a scalar, of any real type, to the graph and to the collection
// [Summaries]. The result is a string scalar: a serialized tensorflow.Summary.
func ScalarSummary(s *op.Scope, tag string, value op.Output) op.Output {
	inner, result := s.Composite(tag)
	out := op.ScalarSummary(result, op.Const(inner.Named("tags"), tag), value)
	s.AddToCollection(Summaries, out)
	return out
}

// HistogramSummary adds a summary with a histogram of values, of any shape and real type, to the
// graph and to the collection [Summaries]. The result is a string scalar: a serialized
// tensorflow.Summary.
func HistogramSummary(s *op.Scope, tag string, values op.Output) op.Output {
	inner, result := s.Composite(tag)
	out := op.HistogramSummary(result, op.Const(inner.Named("tag"), tag), values)
	s.AddToCollection(Summaries, out)
	return out
}

// MergeAllSummaries adds the merge of all summaries in the collection [Summaries], a string scalar.
// It returns the zero Output if there are none.
func MergeAllSummaries(s *op.Scope) op.Output {
	outs := outputsIn(s, Summaries)
	if len(outs) == 0 {
		return op.Output{}
	}
	return op.MergeSummary(s.SubScope("Merge"), outs)
}

// outputsIn returns the outputs in a collection.
func outputsIn(s *op.Scope, collection string) []op.Output {
	var out []op.Output
	for _, v := range s.Collection(collection) {
		if o, ok := v.(op.Output); ok {
			out = append(out, o)
		}
	}
	return out
}
