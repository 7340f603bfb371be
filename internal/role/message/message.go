// Package message holds the requests and responses of both services that carry tensors, as they are
// inside a process. Roles call each other with these directly, without serialization; package rpc
// translates them to and from the bytes of the wire without copying elements. Messages that carry
// no tensors are used as they are generated (package pb).
//
// Whoever receives a request borrows its tensors until the call returns, except where a field says
// otherwise. The caller owns the tensors of a response.
package message

import (
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// NamedTensor is a tensor by the name of a feed or fetch, or by its rendezvous key.
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
	RequestID         int64 // 0 for a request that is not checked for repetition
	// Into is where a master of this process may put its response, instead of into a new one; may
	// be nil.
	Into *RunStepResponse
}

// RunStepResponse is the outcome of a step. Err is set where the error travels in the body of the
// response.
type RunStepResponse struct {
	Tensors  []NamedTensor // of all fetches, in any order
	Metadata *pb.RunMetadata
	Err      *status.Error
}

// RunCallableRequest asks a master to run a step that was prepared with MakeCallable.
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

// RunGraphRequest asks a worker to run its part of a step.
type RunGraphRequest struct {
	Session           string
	SessionCreated    bool // a worker session was made with CreateWorkerSession
	GraphHandle       string
	StepID            int64
	Send              []NamedTensor // by rendezvous key
	RecvKeys          []string
	Exec              *pb.ExecutorOpts // may be nil
	IsPartial         bool
	IsLastPartial     bool
	StoreErrorsInBody bool
	RequestID         int64
	// CanWait says that the request may be sent with others to the same task that soon follow it.
	CanWait bool
	// OnReceivesSent is called by a worker of this process when it has asked for what the part receives
	// first, before it computes; may be nil.
	OnReceivesSent func()
	// Into is where a worker of this process may put its response, instead of into a new one; may
	// be nil.
	Into *RunGraphResponse
}

// RunGraphResponse is the outcome of one part of a step. Err is set where the error travels in the
// body.
type RunGraphResponse struct {
	Recv            []NamedTensor
	StepStats       *pb.StepStats
	CostGraph       *pb.CostGraphDef
	PartitionGraphs []*pb.GraphDef
	Err             *status.Error
	// Recyclable says that a worker of this process has kept nothing of the call, nor of its
	// context.
	Recyclable bool
}

// RecvTensorRequest asks a worker for a tensor of a step. It may come before the step does.
type RecvTensorRequest struct {
	StepID    int64
	Key       string
	RequestID int64
	Transport *anypb.Any // offer of another way to carry the elements; may be nil
}

// RecvTensorResponse is a tensor of a step, or the news that it is dead.
type RecvTensorResponse struct {
	Tensor          tensor.Tensor
	Dead            bool
	SendStartMicros int64
	RequireAck      bool
	Transport       *anypb.Any
}
