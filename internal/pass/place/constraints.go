package place

import (
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// buildGroups determines the requests of each node and joins nodes to groups: by edges that cannot
// cross devices, by the constraints that function bodies put on arguments and results, and by
// colocation requests.
func (p *placer) buildGroups() error {
	for n := range p.g.Nodes() {
		if err := p.addNode(n); err != nil {
			return attach(err, n.Name)
		}
	}
	inspect, err := p.joinEdges()
	if err != nil {
		return err
	}
	for _, n := range inspect {
		if err := p.applyBody(n); err != nil {
			return err
		}
	}
	if err := p.joinClasses(); err != nil {
		return err
	}
	for n := range p.g.Nodes() {
		p.groupOf(n).preferNative()
	}
	return nil
}

// addNode creates the group of a single node.
func (p *placer) addNode(n *graph.Node) error {
	g := newGroup(n.ID, p.supportedTypes(n))
	var err error
	switch {
	case n.Assigned != "":
		err = p.setAssigned(&g, n)
	case len(g.types) == 0:
		err = p.noKernel(n)
	case n.Device != "":
		if g.requested, err = device.Parse(n.Device); err != nil {
			err = status.InvalidArgumentf("Malformed device specification '%s' in node: %s", n.Device, describeNode(n))
		}
		// The request of such a node takes precedence over those of other nodes.
		if makesResource(n) {
			g.resource = g.requested
		}
	}
	p.groups[n.ID] = g
	return err
}

func (p *placer) setAssigned(g *group, n *graph.Node) error {
	if _, err := device.Parse(n.Assigned); err != nil {
		return status.Internalf("Malformed assigned device '%s'", n.Assigned)
	}
	d, ok := p.devices.byName[n.Assigned]
	if !ok {
		return status.Internalf("Assigned device '%s' does not match any device. This error can happen when one attempts to run a "+
			"tf.function with resource inputs residing on remote devices. This use case is currently not supported. Here are the "+
			"devices available on this machine: [%s].If you are seeing this error when running using a tf.Session, set "+
			"share_cluster_devices_in_session to true in the tf.ConfigProto.", n.Assigned, strings.Join(p.devices.names(), ", "))
	}
	g.assigned, g.requested = d.spec, d.spec
	for _, t := range g.types {
		if t.typ == d.spec.Type {
			return nil
		}
	}
	return status.Internalf("Assigned device '%s' does not have registered OpKernel support for %s", n.Assigned, n.Op.Name)
}

// makesResource reports whether a node only returns one reference or resource.
func makesResource(n *graph.Node) bool {
	return len(n.InTypes) == 0 && len(n.OutTypes) == 1 && isRefOrResource(n.OutTypes[0])
}

func isRefOrResource(t tensor.DType) bool { return t.IsRef() || t == tensor.Resource }

// joinEdges joins the sides of edges that carry references, resources or datasets. It returns the
// calls whose function bodies must be inspected.
func (p *placer) joinEdges() (inspect []*graph.Node, err error) {
	for n := range p.g.Nodes() {
		if needsInspection(n) {
			inspect = append(inspect, n)
			p.addEnds(n)
		}
	}
	for n := range p.g.Nodes() {
		for i, in := range n.Inputs() {
			if in.Node == nil {
				continue
			}
			src, dst := p.sides(graph.Edge{Src: in.Node, SrcOut: in.Index, Dst: n, DstIn: i})
			if !staysOnDevice(in.Node.Op, n.Op, n.InTypes[i], dst.op) {
				continue
			}
			if err := p.joinEdge(src, dst); err != nil {
				return nil, err
			}
		}
	}
	return inspect, nil
}

// staysOnDevice reports whether a value of type t from src to dst cannot cross devices. takenAs is
// the operation of the consumer, or of the end that represents it.
func staysOnDevice(src, dst *opdef.Op, t tensor.DType, takenAs string) bool {
	if t == tensor.Variant {
		return isDataset(src) && isDataset(dst)
	}
	return isRefOrResource(t) && !forwardsResources[takenAs]
}

// forwardsResources are operations that forward their inputs to nodes that may be on other devices.
var forwardsResources = map[string]bool{
	"DeleteMultiDeviceIterator": true, "ExperimentalGroupByReducerDataset": true,
	"ExperimentalGroupByWindowDataset": true, "ExperimentalMapAndBatchDataset": true,
	"ExperimentalParallelInterleaveDataset": true, "ExperimentalScanDataset": true,
	"ExperimentalTakeWhileDataset": true, "FilterDataset": true, "FlatMapDataset": true, "GeneratorDataset": true,
	"GroupByReducerDataset": true, "GroupByWindowDataset": true, "IdentityN": true, "InterleaveDataset": true,
	"LegacyParallelInterleaveDatasetV2": true, "MapAndBatchDataset": true, "MapDataset": true,
	"ParallelFilterDataset": true, "ParallelInterleaveDataset": true, "ParallelInterleaveDatasetV2": true,
	"ParallelInterleaveDatasetV3": true, "ParallelInterleaveDatasetV4": true, "ParallelMapDataset": true,
	"ParallelMapDatasetV2": true, "PartitionedCall": true, "ReduceDataset": true, "ScanDataset": true,
	"StatefulPartitionedCall": true, "TakeWhileDataset": true,
}

// isDataset reports whether an operation returns a dataset. All of these, and no others, are named
// "…Dataset" or "…DatasetV2".
func isDataset(op *opdef.Op) bool {
	if len(op.Outputs) != 1 || op.Outputs[0].DType != tensor.Variant {
		return false
	}
	stem := strings.TrimRight(op.Name, "0123456789")
	return op.Name == "DatasetFromGraph" || strings.HasSuffix(op.Name, "Dataset") || stem != op.Name && strings.HasSuffix(stem, "DatasetV")
}

// joinEdge joins the ends of an edge that cannot cross devices. If their requests conflict, that of
// the source takes precedence.
func (p *placer) joinEdge(src, dst member) error {
	s, d := &p.groups[p.root(src.id)], &p.groups[p.root(dst.id)]
	conflict := func(what string, a, b device.Spec) error {
		return status.InvalidArgumentf("Cannot place the graph because a reference or resource edge connects colocation groups with "+
			"incompatible %s devices: %v vs %v. The edge src node is name='%s' (op='%s'), and the dst node is name='%s' (op='%s').",
			what, a, b, src.name(), src.op, dst.name(), dst.op)
	}
	if !s.assigned.IsCompatible(d.assigned) {
		return conflict("assigned", s.assigned, d.assigned)
	}
	if !s.resource.IsCompatible(d.resource) {
		return conflict("resource", s.resource, d.resource)
	}
	if !s.requested.IsCompatible(d.requested) {
		p.logf("Ignoring device specification %v for node '%s' because the input edge from '%s' is a reference connection and "+
			"already has a device field set to %v", d.requested, dst.name(), src.name(), s.requested)
		d.requested = s.requested.With(d.assigned).With(d.resource)
	}
	if err := p.join(src, dst); err != nil {
		return attach(status.InvalidArgumentf("Nodes were connected by a reference or resource connection (requiring them to be on the "+
			"same device), but the two nodes were assigned two different devices: %s", err.Error()), dst.name())
	}
	return nil
}

// classPrefix starts the values of the attribute _class that name a colocation group.
const classPrefix = "loc:@"

// joinClasses joins the nodes of each colocation group. A node is also a member of the group of its
// own name.
func (p *placer) joinClasses() error {
	members := map[string]*graph.Node{} // the first of each group
	for n := range p.g.Nodes() {
		for _, class := range n.Attrs.Strings("_class") {
			name, ok := strings.CutPrefix(class, classPrefix)
			if !ok {
				continue
			}
			if err := p.joinClass(members, name, n); err != nil {
				return err
			}
		}
		if err := p.joinClass(members, n.Name, n); err != nil {
			return err
		}
	}
	return nil
}

func (p *placer) joinClass(members map[string]*graph.Node, name string, n *graph.Node) error {
	first, ok := members[name]
	if !ok {
		members[name] = n
		return nil
	}
	err := p.join(memberOf(n), memberOf(first))
	if err == nil || p.o.Soft {
		if err != nil {
			p.logf("Ignoring request to colocate node '%s' with nodes in colocation group '%s' because soft placement is on and an "+
				"attempt at doing so resulted in the following error: %v", n.Name, name, attach(err, n.Name))
		}
		return nil
	}
	return attach(err, n.Name)
}

// preferNative removes the types of XLA devices, which peers of older versions list, unless one is
// requested or there are no other types.
func (g *group) preferNative() {
	for _, spec := range []device.Spec{g.requested, g.assigned, g.resource} {
		if isXLA(spec.Type) {
			return
		}
	}
	var native []supported
	for _, t := range g.types {
		if !isXLA(t.typ) {
			native = append(native, t)
		}
	}
	if len(native) > 0 {
		g.types = native
	}
}

func isXLA(typ string) bool {
	switch typ {
	case "XLA_CPU", "XLA_GPU", "TPU", "XLA_CPU_JIT", "XLA_GPU_JIT", "XLA_TPU_JIT":
		return true
	default:
		return false
	}
}
