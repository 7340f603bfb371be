package graph

import (
	"slices"

	"github.com/weft-ml/weft/status"
)

const (
	// ProducerVersion is the version of graphs that this module makes, and the one that it
	// consumes: TensorFlow 2.21's.
	ProducerVersion = 2474
	// MinConsumerVersion is the oldest consumer that can read the graphs that this module makes,
	// functions included.
	MinConsumerVersion = 12
)

// Check reports why a graph of these versions cannot be read here.
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

// merge returns the versions of a graph of versions v after it was extended by one of versions w.
func (v Versions) merge(w Versions) Versions {
	bad := slices.Concat(v.BadConsumers, w.BadConsumers)
	slices.Sort(bad)
	return Versions{
		Producer:     max(v.Producer, w.Producer),
		MinConsumer:  max(v.MinConsumer, w.MinConsumer),
		BadConsumers: slices.Compact(bad),
	}
}
