package pbconv

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// Field numbers of the nodes of functions that programs of TensorFlow 0.12 and earlier write.
// TensorFlow removed the field oldNode of FunctionDef later. The other fields of these nodes are
// those of a NodeDef.
const (
	oldNode = 2 // repeated, in FunctionDef
	oldRet  = 1 // repeated string: names of the outputs
	oldDep  = 4 // repeated string: outputs of nodes that must run before
)

// oldNodes adds the nodes of the old form of a function to out, with the names of their outputs.
func (r *reader) oldNodes(p *pb.FunctionDef, out *graph.FunctionDef) error {
	return eachField(p.ProtoReflect().GetUnknown(), func(number protowire.Number, value []byte) error {
		if number != oldNode {
			return nil
		}
		var node pb.NodeDef
		if err := proto.Unmarshal(value, &node); err != nil {
			return status.DataLossf("a node cannot be parsed")
		}
		node.Name, node.Device = "", ""
		def, err := r.node(&node)
		if err != nil {
			return err
		}
		rets := []string{}
		err = eachField(value, func(number protowire.Number, value []byte) error {
			if number == oldRet {
				rets = append(rets, string(value))
			} else if number == oldDep {
				def.Inputs = append(def.Inputs, "^"+string(value))
			}
			return nil
		})
		out.Nodes, out.OldOutputs = append(out.Nodes, def), append(out.OldOutputs, rets)
		return err
	})
}

// eachField calls f with the fields of a message that are byte strings or messages.
func eachField(b []byte, f func(number protowire.Number, value []byte) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return status.DataLossf("a message cannot be parsed")
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(number, kind, b)
		if size < 0 {
			return status.DataLossf("a message cannot be parsed")
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b)
			if err := f(number, value); err != nil {
				return err
			}
		}
		b = b[size:]
	}
	return nil
}

// setOldNodes sets the nodes of a function in the old form.
func setOldNodes(p *pb.FunctionDef, f graph.FunctionDef) error {
	if len(f.OldOutputs) != len(f.Nodes) {
		return status.InvalidArgumentf("%d nodes, but the outputs of %d", len(f.Nodes), len(f.OldOutputs))
	}
	var all []byte
	for i, def := range f.Nodes {
		var deps []string
		for k, input := range def.Inputs {
			if strings.HasPrefix(input, "^") {
				def.Inputs, deps = def.Inputs[:k], def.Inputs[k:]
				break
			}
		}
		node, err := NodeToProto(def)
		if err != nil {
			return err
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(node)
		if err != nil {
			return status.InvalidArgumentf("%w", err)
		}
		for _, ret := range f.OldOutputs[i] {
			b = protowire.AppendString(protowire.AppendTag(b, oldRet, protowire.BytesType), ret)
		}
		for _, dep := range deps {
			b = protowire.AppendString(protowire.AppendTag(b, oldDep, protowire.BytesType), dep[1:])
		}
		all = protowire.AppendBytes(protowire.AppendTag(all, oldNode, protowire.BytesType), b)
	}
	p.ProtoReflect().SetUnknown(all)
	return nil
}
