// Package weft is the client: it runs graphs on a cluster, or in this process.
//
//	g := … // built with package op
//	s, err := weft.NewSession("grpc://localhost:2222", g)
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//	out, err := s.Run(ctx, map[graph.Output]tensor.Tensor{x: value}, []graph.Output{y}, nil)
//
// A target is "grpc://host:port", the address of any task of a cluster, of this project's servers
// or TensorFlow's; or "local", for a task without a network, once package local is imported. This
// package links neither kernels nor the executor. A server in this process is reached by plain
// calls.
//
// Errors are coded (package status) and carry TensorFlow's codes and texts: a program that recovers
// from the loss of a task looks for Aborted and Unavailable.
package weft

import (
	"context"
	"strings"

	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

const grpcScheme = "grpc://"

// connect returns the master behind a target, and what is to be called when it is no longer used.
func connect(target string, set *settings) (rpc.Master, func(context.Context), error) {
	useNetwork := set.config.GetRpcOptions().GetUseRpcForInprocessMaster()
	if open := rpc.LookupTarget(target); open != nil && !useNetwork {
		return open(set.config, set.log)
	}
	address, ok := strings.CutPrefix(target, grpcScheme)
	if !ok {
		return nil, nil, unknownTarget(target)
	}
	conn, err := rpc.Dial(address)
	if err != nil {
		return nil, nil, err
	}
	return rpc.NewMasterClient(conn, target), func(context.Context) { conn.Close() }, nil
}

func unknownTarget(target string) error {
	if target == "local" {
		return status.NotFoundf("target %q is known once package github.com/weft-ml/weft/local is imported", target)
	}
	return status.NotFoundf("No session factory registered for the given session options: {target: %q}: "+
		"a target is grpc://host:port, or local", target)
}

// checkTarget refuses what connect would.
func checkTarget(target string) error {
	if rpc.LookupTarget(target) != nil {
		return nil
	}
	address, ok := strings.CutPrefix(target, grpcScheme)
	if !ok {
		return unknownTarget(target)
	}
	return rpc.CheckAddress(address)
}
