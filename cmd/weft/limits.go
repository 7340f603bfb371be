package main

import (
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/server"
)

// limitFlags adds the flags of limits, whose defaults are in l.
func limitFlags(flags *pflag.FlagSet, l *server.Limits) {
	*l = server.DefaultLimits()
	flags.IntVar(&l.Connections, "max-connections", l.Connections, "open connections, at most 7/8 of the file descriptors; tasks of the cluster always get in; 0 for no limit, as in the following flags")
	flags.IntVar(&l.ConnectionsPerAddress, "max-connections-per-address", l.ConnectionsPerAddress, "open connections from one IP address, if it is not one of the cluster")
	flags.IntVar(&l.ConnectionsPerPrincipal, "max-connections-per-principal", l.ConnectionsPerPrincipal, "open connections of one client with a certificate")
	flags.DurationVar(&l.Handshake, "handshake-timeout", l.Handshake, "time in which a new connection must speak HTTP/2")
	flags.DurationVar(&l.Frame, "frame-timeout", l.Frame, "time in which a frame or header block that has begun must be complete")
	flags.DurationVar(&l.Idle, "idle-timeout", l.Idle, "close the connections of clients that have made no call for this time")
	flags.DurationVar(&l.Request, "request-timeout", l.Request, "end incomplete requests if no byte has arrived for this time")
	flags.DurationVar(&l.Response, "response-timeout", l.Response, "end responses if the client has taken no byte for this time")
	flags.DurationVar(&l.Keepalive, "keepalive-interval", l.Keepalive, "ask for a sign of life if nothing has arrived for this time on a connection with a call, or 6 times as long on an idle one of a task")
	flags.DurationVar(&l.KeepaliveTimeout, "keepalive-timeout", l.KeepaliveTimeout, "close a connection if nothing arrives for this time after a question for a sign of life")
	flags.IntVar(&l.Streams, "max-streams", l.Streams, "concurrent calls on one connection of a client")
	flags.IntVar(&l.TaskStreams, "max-task-streams", l.TaskStreams, "concurrent calls on one connection of a task")
	flags.Int64Var(&l.RequestSize, "max-request-size", l.RequestSize, "size of a client's request, in bytes")
	flags.Int64Var(&l.GraphSize, "max-graph-size", l.GraphSize, "size of a request that creates or extends a session, in bytes")
	flags.IntVar(&l.Decompression, "max-decompression", l.Decompression, "largest ratio of the size of a compressed request to what was received")
	flags.IntVar(&l.Sessions, "max-sessions", l.Sessions, "open sessions of clients")
	flags.IntVar(&l.SessionsPerPrincipal, "max-sessions-per-principal", l.SessionsPerPrincipal, "open sessions of one client with a certificate")
	flags.IntVar(&l.GraphNodes, "max-graph-nodes", l.GraphNodes, "nodes of a graph, with those of its functions")
	flags.IntVar(&l.GraphEdges, "max-graph-edges", l.GraphEdges, "inputs of the nodes of a graph")
	flags.IntVar(&l.GraphFunctions, "max-graph-functions", l.GraphFunctions, "functions of a graph")
	flags.IntVar(&l.EarlySteps, "max-early-steps", l.EarlySteps, "steps for which other tasks wait before their masters start them")
	flags.IntVar(&l.EarlyStepsPerPeer, "max-early-steps-per-peer", l.EarlyStepsPerPeer, "the same for one other task")
	flags.IntVar(&l.TraceRecords, "max-trace-records", l.TraceRecords, "executions of nodes in the trace of a device; the rest is left out")
	flags.IntVar(&l.PartialRuns, "max-partial-runs", l.PartialRuns, "partial runs of a session that have not ended")
	flags.DurationVar(&l.PartialRun, "partial-run-timeout", l.PartialRun, "end partial runs without a call for this time")
	flags.IntVar(&l.Callables, "max-callables", l.Callables, "prepared steps (MakeCallable) of a session")
	flags.DurationVar(&l.StepTime, "max-step-time", l.StepTime, "time that a step may take")
	flags.Var((*byteSize)(&l.StepMemory), "max-step-memory", "memory that the tensors of a step may take on this task, as in 3GiB")
	flags.Var((*byteSize)(&l.SessionMemory), "max-session-memory", "memory that the tensors of a session may take on this task, with those in its variables and queues")
	flags.Var((*byteSize)(&l.TenantMemory), "max-tenant-memory", "memory that the tensors of all sessions of a tenant may take on this task; without certificates, all clients are one tenant")
}

// connectionFlags adds the flags of the limits of connections to a command whose other limits of
// gRPC are the default ones.
func connectionFlags(flags *pflag.FlagSet, l *grpch2.Limits, of string) {
	*l = grpch2.DefaultLimits()
	flags.IntVar(&l.Connections, "max-connections", l.Connections, "open connections"+of+", at most 7/8 of the file descriptors; 0 for no limit, as in the following flag")
	flags.IntVar(&l.AddressConnections, "max-connections-per-address", l.AddressConnections, "open connections from one IP address")
}
