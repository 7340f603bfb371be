package graph

import (
	"slices"

	"github.com/weft-ml/weft/status"
)

const (
	// ProducerVersion is the producer version of the graphs that this module creates, and the
	// consumer version of the graphs that it reads. It is that of TensorFlow 2.21.
	ProducerVersion = 2474
	// MinConsumerVersion is the oldest consumer version that can read the graphs that this module
	// creates, including their functions.
	MinConsumerVersion = 12
)

// Check returns an InvalidArgument error if this module cannot read a graph with these versions.
func (v Versions) Check() error {
	const tf = "TensorFlow 2.21.0"
	switch {
	case v.Producer < 0:
		return status.InvalidArgumentf("GraphDef producer version %d below min producer 0 supported by %s.  "+
			"Please regenerate your graph.", v.Producer, tf)
	case v.MinConsumer > ProducerVersion:
		return status.InvalidArgumentf("GraphDef min consumer version %d above current version %d for %s.  "+
			"Please upgrade TensorFlow.", v.MinConsumer, ProducerVersion, tf)
	case slices.Contains(v.BadConsumers, ProducerVersion):
		return status.InvalidArgumentf("GraphDef disallows consumer version %d.  Please upgrade TensorFlow: "+
			"this version is likely buggy.", ProducerVersion)
	}
	return nil
}

// merge returns the versions of a graph with versions v after it was extended by one with versions
// w.
func (v Versions) merge(w Versions) Versions {
	bad := slices.Concat(v.BadConsumers, w.BadConsumers)
	slices.Sort(bad)
	return Versions{
		Producer:     max(v.Producer, w.Producer),
		MinConsumer:  max(v.MinConsumer, w.MinConsumer),
		BadConsumers: slices.Compact(bad),
	}
}
