package peer

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
)

// Fields of this program in messages of TensorFlow, which has no fields with these numbers and
// ignores them.
const (
	fieldWeft        protowire.Number = 1000 // of GetStatusResponse: the task is Weft
	fieldNamedFrames protowire.Number = 1000 // of RegisterGraphRequest: NamedFrameIDs
)

// Mark makes a status say that the task is one of Weft.
func Mark(resp *pb.GetStatusResponse) { setFlag(resp, fieldWeft) }

// IsMarked reports whether a status is that of a task of Weft.
func IsMarked(resp *pb.GetStatusResponse) bool { return hasFlag(resp, fieldWeft) }

// UseNamedFrames makes a task of Weft compute the IDs of frames as old releases do, because a task
// of an old release runs another part of the graph.
func UseNamedFrames(req *pb.RegisterGraphRequest) { setFlag(req, fieldNamedFrames) }

// UsesNamedFrames reports whether UseNamedFrames was called for a request.
func UsesNamedFrames(req *pb.RegisterGraphRequest) bool { return hasFlag(req, fieldNamedFrames) }

func setFlag(m proto.Message, number protowire.Number) {
	addField(m, number, protowire.VarintType, protowire.AppendVarint(nil, 1))
}

func hasFlag(m proto.Message, number protowire.Number) bool {
	for f := range fields(m) {
		if f.number == number {
			return true
		}
	}
	return false
}
