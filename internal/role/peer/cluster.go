package peer

import (
	"hash/fnv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
)

// Fields by which two tasks of Weft compare their cluster specifications.
const (
	fieldClusterHash protowire.Number = 1001 // of GetStatusRequest: hash of the caller's
	fieldClusterText protowire.Number = 1001 // of GetStatusResponse: the task's, if it is another
)

// AskCluster adds the hash of the caller's cluster specification to a request.
func AskCluster(req *pb.GetStatusRequest, own cluster.Spec) {
	r := req.ProtoReflect()
	b := protowire.AppendTag(r.GetUnknown(), fieldClusterHash, protowire.Fixed64Type)
	r.SetUnknown(protowire.AppendFixed64(b, hashOf(own)))
}

// AnswerCluster adds the task's cluster specification to its answer if the request has the hash of
// another one.
func AnswerCluster(req *pb.GetStatusRequest, resp *pb.GetStatusResponse, own cluster.Spec) {
	field := findField(req, fieldClusterHash, protowire.Fixed64Type)
	hash, n := protowire.ConsumeFixed64(field)
	if n < 0 || hash == hashOf(own) {
		return
	}
	r := resp.ProtoReflect()
	b := protowire.AppendTag(r.GetUnknown(), fieldClusterText, protowire.BytesType)
	r.SetUnknown(protowire.AppendString(b, own.String()))
}

// ClusterOf returns the cluster specification in an answer; nil if there is none, because it is the
// caller's or the task is not of Weft.
func ClusterOf(resp *pb.GetStatusResponse) (cluster.Spec, error) {
	text, n := protowire.ConsumeBytes(findField(resp, fieldClusterText, protowire.BytesType))
	if n < 0 {
		return nil, nil
	}
	return cluster.Parse(string(text))
}

func hashOf(spec cluster.Spec) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(spec.String()))
	return h.Sum64()
}

// findField returns the bytes of a message from the value of an unknown field on; nil if there is
// no such field.
func findField(m proto.Message, field protowire.Number, kind protowire.Type) []byte {
	for b := m.ProtoReflect().GetUnknown(); len(b) > 0; {
		number, wireType, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			return nil
		}
		if number == field && wireType == kind {
			return b[tag:]
		}
		n := protowire.ConsumeFieldValue(number, wireType, b[tag:])
		if n < 0 {
			return nil
		}
		b = b[tag+n:]
	}
	return nil
}
