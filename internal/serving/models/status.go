package models

import (
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/status"
)

// Status returns an error as a message; nil is OK.
func Status(err error) *servingpb.StatusProto {
	if err == nil {
		return &servingpb.StatusProto{}
	}
	e := status.From(err)
	return &servingpb.StatusProto{ErrorCode: pb.Code(e.Code), ErrorMessage: e.Message}
}
