// Package weft is the client: it runs graphs on a cluster or in this process.
//
//	g := … // built with package op
//	sess, err := weft.NewSession("grpc://localhost:2222", g)
//	if err != nil {
//		return err
//	}
//	defer sess.Close()
//	out, err := sess.Fetch(ctx, weft.Feeds{x: value}, y) // out[0] is the value of y
//
// A target is "grpc://host:port", the address of any task of a cluster of this project's or
// TensorFlow's servers, or "local" for a task in this process, if package local is imported. This
// package links neither kernels nor the executor. A server in this process is called directly,
// without a connection.
//
// # Steps
//
//   - [Session.Fetch] returns the values of outputs, [Session.Exec] runs nodes for their effect,
//     and [Session.Run] does both.
//   - [Session.Prepare] returns a [Callable], for a step that runs often.
//   - [Session.RunTraced] records when and where each node ran.
//   - [Session.StartPartial] begins a step whose feeds and fetches come in several calls.
//
// # Errors
//
// Errors have a code (package status) and TensorFlow's codes and texts. A program that recovers
// from the loss of a task looks for the codes Aborted and Unavailable.
package weft

import (
	"context"
	"strings"

	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

const grpcScheme = "grpc://"

// connect returns the master of a target and a function that the caller calls when it has finished
// using the master.
func connect(target string, set *settings) (rpc.Master, func(context.Context), error) {
	useNetwork := set.config.GetRpcOptions().GetUseRpcForInprocessMaster()
	if open := rpc.LookupTarget(target); open != nil && !useNetwork {
		return open(set.config, set.log)
	}
	address, ok := strings.CutPrefix(target, grpcScheme)
	if !ok {
		return nil, nil, unknownTarget(target)
	}
	conn, err := dial(address, set)
	if err != nil {
		return nil, nil, err
	}
	if set.tracer != nil {
		conn.Trace(set.tracer)
	}
	return rpc.NewMasterClient(conn, target), func(context.Context) { conn.Close() }, nil
}

// dial returns a connection to an address, with TLS if the settings ask for it.
func dial(address string, set *settings) (*rpc.Conn, error) {
	if set.tls == nil {
		return rpc.Dial(address)
	}
	creds, task, err := set.tls.credentials(set.log)
	if err != nil {
		return nil, err
	}
	return rpc.DialSecure(address, creds, task)
}

func unknownTarget(target string) error {
	if target == "local" {
		return status.NotFoundf("target %q needs an import of package github.com/weft-ml/weft/local", target)
	}
	return status.NotFoundf("No session factory registered for the given session options: {target: %q}: "+
		"a target is grpc://host:port, or local", target)
}

// checkTarget returns the error that connect would return for a malformed or unknown target.
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
