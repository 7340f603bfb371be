package train

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// exportCollection converts a collection to its form in a MetaGraph. Values of other types are
// omitted.
func exportCollection(values []any) (savedmodel.Collection, error) {
	c := savedmodel.Collection{}
	for _, v := range values {
		switch v := v.(type) {
		case *graph.Node:
			c.Nodes = append(c.Nodes, v.Name)
		case graph.Output:
			c.Nodes = append(c.Nodes, savedmodel.OutputName(v))
		case op.CollectionMessage:
			b, err := v.MarshalCollection()
			if err != nil {
				return c, err
			}
			c.Bytes = append(c.Bytes, b)
		case string:
			c.Bytes = append(c.Bytes, []byte(v))
		case int64:
			c.Ints = append(c.Ints, v)
		case float32:
			c.Floats = append(c.Floats, v)
		}
	}
	return c, nil
}

// An importer converts the collections of a MetaGraph to Go values.
type importer struct {
	scope        *op.Scope
	nodes        map[string]*graph.Node // by the names in the MetaGraph
	vars         map[string]*Variable   // converted variables, which several collections may hold
	saverOptions SaverOptions
}

// collection returns the values of a collection.
func (im *importer) collection(name string, c savedmodel.Collection) (values []any, err error) {
	add := func(v any, err error) error {
		values = append(values, v)
		return err
	}
	for _, node := range c.Nodes {
		if strings.Contains(node, ":") {
			err = add(im.output(node))
		} else {
			err = add(im.node(node))
		}
		if err != nil {
			return nil, err
		}
	}
	for _, b := range c.Bytes {
		switch name {
		case GlobalVariables, LocalVariables, TrainableVariables, MovingAverageVariables, globalStepKey, "model_variables", "metric_variables":
			v, varErr := im.variable(b)
			if varErr == nil && name == TrainableVariables {
				v.Trainable = true // older messages do not say it
			}
			err = add(v, varErr)
		case QueueRunners:
			err = add(im.queueRunner(b))
		case Savers:
			err = add(im.saverDef(b))
		case whileContexts, condContexts: // derived from the graph on export
		default:
			err = add(string(b), nil)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, v := range c.Ints {
		values = append(values, v)
	}
	for _, v := range c.Floats {
		values = append(values, v)
	}
	return values, nil
}

func unmarshal(b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return status.DataLossf("not a valid %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

func (im *importer) node(name string) (*graph.Node, error) {
	if n := im.nodes[name]; n != nil {
		return n, nil
	}
	return nil, status.NotFoundf("the graph has no node %q", name)
}

func (im *importer) output(name string) (graph.Output, error) {
	node, index := graph.ParseInput(name)
	n := im.nodes[node]
	if n == nil || index < 0 || index >= len(n.OutTypes) {
		return graph.Output{}, status.NotFoundf("the graph has no output %q", name)
	}
	return n.Out(index), nil
}

// saver returns the saver whose nodes def names.
func (im *importer) saver(def savedmodel.Saver) (*Saver, error) {
	prefix := im.scope.Prefix()
	def.Filename, def.Save, def.Restore = prefix+def.Filename, prefix+def.Save, prefix+def.Restore
	return SaverOf(im.scope, def, im.saverOptions)
}

func (im *importer) saverDef(b []byte) (*Saver, error) {
	var def pb.SaverDef
	if err := unmarshal(b, &def); err != nil {
		return nil, err
	}
	return im.saver(savedmodel.Saver{
		Filename: def.GetFilenameTensorName(), Save: def.GetSaveTensorName(), Restore: def.GetRestoreOpName(),
		MaxToKeep: int(def.GetMaxToKeep()), Sharded: def.GetSharded(), KeepEvery: def.GetKeepCheckpointEveryNHours(),
		FormatV1: def.GetVersion() != pb.SaverDef_V2,
	})
}

func (im *importer) queueRunner(b []byte) (q *QueueRunner, err error) {
	var def pb.QueueRunnerDef
	if err := unmarshal(b, &def); err != nil {
		return nil, err
	}
	q = &QueueRunner{}
	if q.Queue, err = im.output(def.GetQueueName()); err != nil {
		return nil, err
	}
	if q.Close, err = im.node(def.GetCloseOpName()); err != nil {
		return nil, err
	}
	if q.Cancel, err = im.node(def.GetCancelOpName()); err != nil {
		return nil, err
	}
	for _, name := range def.GetEnqueueOpName() {
		n, err := im.node(name)
		if err != nil {
			return nil, err
		}
		q.Enqueue = append(q.Enqueue, n)
	}
	for _, c := range def.GetQueueClosedExceptionTypes() {
		q.ClosedCodes = append(q.ClosedCodes, status.Code(c))
	}
	return q, nil
}

func (im *importer) variable(b []byte) (*Variable, error) {
	var def pb.VariableDef
	if err := unmarshal(b, &def); err != nil {
		return nil, err
	}
	if v := im.vars[def.GetVariableName()]; v != nil {
		return v, nil
	}
	v := &Variable{Resource: def.GetIsResource(), Trainable: def.GetTrainable()}
	var err error
	if v.Handle, err = im.output(def.GetVariableName()); err != nil {
		return nil, err
	}
	snapshot := def.GetSnapshotName()
	if snapshot == "" && v.Resource { // up to TensorFlow 1.4
		node, _ := graph.ParseInput(def.GetVariableName())
		snapshot = node + "/Read/ReadVariableOp"
	}
	if v.Value, err = im.output(snapshot); err != nil {
		return nil, err
	}
	v.Initial, _ = im.output(def.GetInitialValueName()) // older MetaGraphs lack the name
	n := v.Handle.Node
	v.Name, v.Initializer = n.Name, im.nodes[def.GetInitializerName()]
	v.DType = n.Attrs.Type("dtype")
	v.Shape, _ = n.Attrs.Shape("shape").Full()
	if part := def.GetSaveSliceInfoDef(); part != nil && len(part.GetVarOffset()) > 0 {
		v.Part = &Part{Name: part.GetFullName(), Shape: tensor.Shape(part.GetFullShape()), Offset: part.GetVarOffset()[0]}
	}
	im.vars[def.GetVariableName()] = v
	return v, nil
}
