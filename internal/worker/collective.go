package worker

import (
	"context"

	"github.com/weft-ml/weft/internal/pb"
	"github.com/weft-ml/weft/status"
)

// errNoCollectives is what a task without collective operations answers, TensorFlow's as well.
var errNoCollectives = status.Internalf("Runtime not initialized with CollectiveExecutorMgr")

// MarkRecvFinished says that a tensor which was to be acknowledged has arrived. This worker asks for none.
func (w *Worker) MarkRecvFinished(context.Context, *pb.MarkRecvFinishedRequest) (*pb.MarkRecvFinishedResponse, error) {
	return &pb.MarkRecvFinishedResponse{}, nil
}

// RecvBuf has nothing to return: no operation of this task makes such buffers.
func (w *Worker) RecvBuf(context.Context, *pb.RecvBufRequest) (*pb.RecvBufResponse, error) {
	return nil, status.Unimplementedf("Worker::RecvBufAsync()")
}

// GetStepSequence has no sequence to return: this task leads no collective group.
func (w *Worker) GetStepSequence(context.Context, *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error) {
	return nil, errNoCollectives
}

// CompleteGroup does not know any group.
func (w *Worker) CompleteGroup(context.Context, *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error) {
	return nil, errNoCollectives
}

// CompleteInstance does not know any group.
func (w *Worker) CompleteInstance(context.Context, *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error) {
	return nil, errNoCollectives
}
