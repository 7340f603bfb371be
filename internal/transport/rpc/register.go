package rpc

import (
	"context"
	"log/slog"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/status"
)

// maxErrorText is the size of the longest text of an error of a method of RegisterUnary, in bytes.
const maxErrorText = 1024

// RegisterUnary registers a method of another service, "/package.Service/Method", with one request
// and one response. Errors have codes; a long text is cut as TensorFlow Serving does. A panic of
// call is logged and answered with an Internal error.
func RegisterUnary[Req, Resp any, PReq interface {
	*Req
	proto.Message
}, PResp interface {
	*Resp
	proto.Message
}](s *Server, log *slog.Logger, method string, call func(context.Context, PReq) (PResp, error)) {
	unary(s, log, method, func(ctx context.Context, req *Req) (*Resp, error) {
		resp, err := call(ctx, req)
		return resp, cutText(err)
	})
}

// cutText returns an error whose text is not too long.
func cutText(err error) error {
	if err == nil {
		return nil
	}
	e := status.From(err)
	if len(e.Message) <= maxErrorText {
		return e
	}
	cut := *e
	cut.Message = e.Message[:maxErrorText] + "...TRUNCATED"
	return &cut
}
