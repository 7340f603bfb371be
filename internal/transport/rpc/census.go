package rpc

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/quota"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

const (
	// minCounted is the smallest message, in bytes, whose parts are counted. A smaller one takes 32
	// MiB at most while it is decoded; see admitSmall for what it leaves on the task.
	minCounted = 16 << 10
	// smallFactor is the memory of a small message once it is decoded, in bytes per byte.
	smallFactor = 4
	// nodeMemory is the memory of a node in bytes: of its message, in the imported graph, and in a
	// partition. A million nodes take 2.8 GiB.
	nodeMemory = 2800
)

// Names of the messages that have limits.
var (
	nodeName     = (*pb.NodeDef)(nil).ProtoReflect().Descriptor().FullName()
	functionName = (*pb.FunctionDef)(nil).ProtoReflect().Descriptor().FullName()
	partialName  = (*pb.PartialRunSetupRequest)(nil).ProtoReflect().Descriptor().FullName()
	callableName = (*pb.CallableOptions)(nil).ProtoReflect().Descriptor().FullName()
)

// census counts what a message holds without decoding it. An empty node takes two bytes of a
// message, and 2.8 KiB of memory once it is in a graph.
type census struct {
	quota *quota.Quota // limits; nil for the default ones

	maxNodes, maxEdges, maxFunctions int // of quota

	nodes, edges, functions int
	names                   int   // feeds, fetches and targets of a step to prepare
	memory                  int64 // estimate in bytes
}

// errNoMemory is the error for a request for which there is no memory.
var errNoMemory = status.ResourceExhaustedf("There is not enough memory to decode the request (--memory-limit).")

// admitMessage returns an error if decoding data as m would take too much memory. The memory is
// held until the caller calls release.
func admitMessage(m proto.Message, data []byte, q *quota.Quota) (release func(), err error) {
	if len(data) < minCounted {
		if !admitSmall(m, int64(len(data))) {
			return nil, errNoMemory
		}
		return func() {}, nil
	}
	c := newCensus(q)
	c.count(m.ProtoReflect().Descriptor(), data)
	if err := c.check(); err != nil {
		return nil, err
	}
	if release = membudget.Hold(c.memory); release == nil {
		return nil, errNoMemory
	}
	return release, nil
}

// admitSmall reports whether there is memory for a message below minCounted, of size bytes. Many
// small requests fill the memory as a large one does, if each leaves something on the task.
//
// It costs a type switch and an atomic addition. RunStep, RunGraph and RecvTensor have decoders of
// their own and do not come here.
func admitSmall(m proto.Message, size int64) bool {
	n := protomem.Message + smallFactor*size
	switch m.(type) {
	// What frees memory. It must be served when there is no memory left.
	case *pb.CloseSessionRequest, *pb.ResetRequest, *pb.ReleaseCallableRequest, *pb.DeleteWorkerSessionRequest,
		*pb.DeregisterGraphRequest, *pb.CleanupGraphRequest, *pb.CleanupAllRequest, *pb.MarkRecvFinishedRequest,
		*pb.CloseContextRequest, *pb.CloseSessionsRequest, *pb.LoggingRequest:
		return true
	// What shows an operator, or the master of a session, that the task lives and what it does. It
	// leaves nothing on the task. The health service decodes its requests itself.
	case *pb.GetStatusRequest, *pb.ListDevicesRequest, *pb.KeepAliveRequest, *pb.WaitQueueDoneRequest, *pb.GetTaskRequest,
		*pb.GetClusterRequest, *pb.GetLogRequest, *pb.SetLogLevelRequest, *pb.GetGraphRequest, *pb.GetScalarsRequest:
		return true
	// What stays on the task until its client removes it. What is left of the memory is for steps
	// that run.
	case *pb.CreateSessionRequest, *pb.ExtendSessionRequest, *pb.MakeCallableRequest, *pb.PartialRunSetupRequest,
		*pb.CreateWorkerSessionRequest, *pb.RegisterGraphRequest, *pb.CreateContextRequest, *pb.UpdateContextRequest:
		return membudget.TakeRecord(n)
	}
	// The rest belongs to steps that run, or is answered at once: collective operations, options of
	// steps, operations of eager contexts, predictions. A response is an answer that this task has
	// asked for: without it the work of the peer is lost, and what it has kept stays there.
	return membudget.TakeSmall(n) || isResponse(m)
}

// isResponse reports whether a message is the answer to a call.
func isResponse(m proto.Message) bool {
	return strings.HasSuffix(string(m.ProtoReflect().Descriptor().Name()), "Response")
}

// AdmitGraph returns an error if a graph in wire format has too many nodes, or would take too much
// memory. The memory is held until the caller calls release.
func AdmitGraph(data []byte, q *quota.Quota) (release func(), err error) {
	return admitMessage(&pb.GraphDef{}, data, q)
}

func newCensus(q *quota.Quota) *census {
	return &census{quota: q, maxNodes: q.Most(quota.Nodes), maxEdges: q.Most(quota.Edges), maxFunctions: q.Most(quota.Functions)}
}

func (c *census) check() error {
	if c.names > c.maxNodes {
		return status.ResourceExhaustedf("The step has more feeds, fetches and targets than a graph may have nodes, %d (%s).",
			c.maxNodes, quota.Nodes.Flag())
	}
	if err := c.quota.Check(quota.Nodes, c.nodes); err != nil {
		return err
	}
	if err := c.quota.Check(quota.Edges, c.edges); err != nil {
		return err
	}
	return c.quota.Check(quota.Functions, c.functions)
}

// full reports whether a limit is exceeded.
func (c *census) full() bool {
	return c.nodes > c.maxNodes || c.names > c.maxNodes || c.edges > c.maxEdges || c.functions > c.maxFunctions
}

// count adds a message. It stops at the first malformed field, which the decoder will report, and
// when a limit is exceeded.
func (c *census) count(desc protoreflect.MessageDescriptor, data []byte) {
	isNode, isStep := false, false
	switch desc.FullName() {
	case nodeName:
		isNode = true
		c.nodes++
		c.memory += nodeMemory
	case functionName:
		c.functions++
		c.memory += nodeMemory
	default:
		isStep = desc.FullName() == partialName || desc.FullName() == callableName
		c.memory += protomem.Message
	}
	fields := desc.Fields()
	for len(data) > 0 && !c.full() {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return
		}
		data = data[n:]
		field := fields.ByNumber(number)
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return
			}
			data = data[n:]
			c.memory += protomem.Value
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return
		}
		data = data[n:]
		switch {
		case field == nil: // kept as it is
			c.memory += int64(len(value)) + protomem.Value
		case field.Message() != nil:
			c.count(field.Message(), value)
		case field.Kind() == protoreflect.StringKind || field.Kind() == protoreflect.BytesKind:
			c.memory += int64(len(value)) + protomem.Value
			if isNode && field.Name() == "input" {
				c.edges++
			}
			if isStep && field.IsList() {
				c.names++
			}
		default:
			c.memory += protomem.Packed(field.Kind(), len(value))
		}
	}
}
