package dataservice

import (
	"context"
	"log/slog"
	"net"

	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/rpc"
)

// service is a dispatcher or worker.
type service interface {
	Register(s *rpc.Server, log *slog.Logger)
}

// Serve serves a dispatcher or worker on l until ctx ends.
func Serve(ctx context.Context, l net.Listener, s service, limits grpch2.Limits, log *slog.Logger) error {
	g := rpc.NewServer(rpc.NewReceiveLimiter(nil), log)
	g.Limits = limits
	s.Register(g, log)
	rpc.RegisterHealth(g)
	rpc.RegisterReflection(g, log)
	stop := context.AfterFunc(ctx, g.Close)
	defer stop()
	err := g.Serve(l)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
