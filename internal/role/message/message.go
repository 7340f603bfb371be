// Package message holds the requests and responses of both services that carry tensors, in their
// form inside a process. Roles call each other with these directly, without serialization; package
// rpc converts them to and from the wire format without copying elements. Messages without tensors
// are used as generated (package pb).
//
// The receiver of a request borrows its tensors until the call returns, unless a field says
// otherwise. The caller owns the tensors of a response.
package message

import (
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// NamedTensor is a tensor with the name of a feed or fetch, or with its rendezvous key.
type NamedTensor struct {
	Name   string
	Tensor tensor.Tensor
}

// RunStepRequest asks a master to run one step of a session.
type RunStepRequest struct {
	Session           string
	Feeds             []NamedTensor
	Fetches           []string
	Targets           []string
	Options           *pb.RunOptions // may be nil
	PartialRun        string         // handle of a partial run; "" for an ordinary step
	StoreErrorsInBody bool
	RequestID         int64 // 0 for a request that is not checked for duplicates
	// Into receives the response of a master in this process, instead of a new message; may be nil.
	Into *RunStepResponse
}

// RunStepResponse is the outcome of a step. Err is set if the request asks for errors in the body.
type RunStepResponse struct {
	Tensors  []NamedTensor // values of all fetches, in any order
	Metadata *pb.RunMetadata
	Err      *status.Error
}

// RunCallableRequest asks a master to run a step prepared with MakeCallable.
type RunCallableRequest struct {
	Session   string
	Handle    int64
	Feeds     []tensor.Tensor // by position
	RequestID int64
}

// RunCallableResponse is the outcome of a prepared step.
type RunCallableResponse struct {
	Fetches  []tensor.Tensor // by position
	Metadata *pb.RunMetadata
}

// RunGraphRequest asks a worker to run its partition of a step.
type RunGraphRequest struct {
	Session           string
	SessionCreated    bool // the session was created with CreateWorkerSession
	GraphHandle       string
	StepID            int64
	Send              []NamedTensor // by rendezvous key
	RecvKeys          []string
	Exec              *pb.ExecutorOpts // may be nil
	IsPartial         bool
	IsLastPartial     bool
	StoreErrorsInBody bool
	RequestID         int64
	// CanWait allows the transport to delay the request until the next flush, so that it shares
	// packets with the requests that follow.
	CanWait bool
	// OnReceivesSent is called by a worker in this process when it has sent the requests for the
	// tensors that the partition receives first, before it computes; may be nil.
	OnReceivesSent func()
	// Into receives the response of a worker in this process, instead of a new message; may be nil.
	Into *RunGraphResponse
}

// RunGraphResponse is the outcome of one partition of a step. Err is set if the request asks for
// errors in the body.
type RunGraphResponse struct {
	Recv            []NamedTensor
	StepStats       *pb.StepStats
	CostGraph       *pb.CostGraphDef
	PartitionGraphs []*pb.GraphDef
	Err             *status.Error
	// Recyclable reports that a worker in this process has kept no reference to the call or its
	// context.
	Recyclable bool
}

// RecvTensorRequest asks a worker for a tensor of a step. It may arrive before the step starts.
type RecvTensorRequest struct {
	StepID    int64
	Key       string
	RequestID int64
	Transport *anypb.Any // offer of another transport for the elements; may be nil
}

// RecvTensorResponse is a tensor of a step, or reports that it is dead.
type RecvTensorResponse struct {
	Tensor          tensor.Tensor
	Dead            bool
	SendStartMicros int64
	RequireAck      bool
	Transport       *anypb.Any
}
