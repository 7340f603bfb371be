package rpc

import (
	"context"
	"errors"
	"io"

	"github.com/weft-ml/weft/internal/proto/pb"
)

func (e echo) CreateContext(_ context.Context, req *pb.CreateContextRequest) (*pb.CreateContextResponse, error) {
	return echoed(e, req, &pb.CreateContextResponse{})
}

func (e echo) UpdateContext(_ context.Context, req *pb.UpdateContextRequest) (*pb.UpdateContextResponse, error) {
	return echoed(e, req, &pb.UpdateContextResponse{})
}

func (e echo) Enqueue(_ context.Context, req *pb.EnqueueRequest) (*pb.EnqueueResponse, error) {
	return echoed(e, req, &pb.EnqueueResponse{})
}

func (e echo) WaitQueueDone(_ context.Context, req *pb.WaitQueueDoneRequest) (*pb.WaitQueueDoneResponse, error) {
	return echoed(e, req, &pb.WaitQueueDoneResponse{})
}

func (e echo) RunComponentFunction(_ context.Context, req *pb.RunComponentFunctionRequest) (*pb.RunComponentFunctionResponse, error) {
	return echoed(e, req, &pb.RunComponentFunctionResponse{})
}

func (e echo) KeepAlive(_ context.Context, req *pb.KeepAliveRequest) (*pb.KeepAliveResponse, error) {
	return echoed(e, req, &pb.KeepAliveResponse{})
}

func (e echo) CloseContext(_ context.Context, req *pb.CloseContextRequest) (*pb.CloseContextResponse, error) {
	return echoed(e, req, &pb.CloseContextResponse{})
}

func (e echo) StreamingEnqueue(
	_ context.Context, next func() (*pb.EnqueueRequest, error), send func(*pb.EnqueueResponse) error,
) error {
	for {
		req, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		resp, err := echoed(e, req, &pb.EnqueueResponse{})
		if err == nil {
			err = send(resp)
		}
		if err != nil {
			return err
		}
	}
}
