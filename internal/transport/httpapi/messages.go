package httpapi

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/opkit/protomem"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// message is a protocol buffer within the JSON of a request or answer.
type message[T any, P interface {
	*T
	proto.Message
}] struct{ of P }

// ProtoMessage returns the message.
func (m message[T, P]) ProtoMessage() proto.Message { return m.of }

// IsZero reports whether there is no message.
func (m message[T, P]) IsZero() bool { return m.of == nil }

// UnmarshalJSON implements json.Unmarshaler. The names of fields may also be in lowerCamelCase.
func (m *message[T, P]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	release := membudget.Hold(protomem.TextMemory(b))
	if release == nil {
		return status.ResourceExhaustedf("there is no memory for a message of %d bytes of JSON (--memory-limit)", len(b))
	}
	defer release()
	m.of = new(T)
	if err := protojson.Unmarshal(b, m.of); err != nil {
		return status.InvalidArgumentf("%w", err)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (m message[T, P]) MarshalJSON() ([]byte, error) {
	return marshalMessage(m.of)
}

// marshalMessage returns the JSON of a message, such as the traces of a step, whose memory it asks
// for: names of fields and digits take ten times the size of the message in wire format, and
// json.Marshal copies the text.
func marshalMessage(m proto.Message) ([]byte, error) {
	const growth, small = 10, 16 << 10
	if n := int64(proto.Size(m)); n > small && !membudget.Take(growth*(1+marshaled)*n) {
		return nil, status.ResourceExhaustedf("there is no memory for the JSON of a message (--memory-limit)")
	}
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
}

// wholeMessage is an answer that is a protocol buffer.
type wholeMessage struct{ of proto.Message }

// MarshalJSON implements json.Marshaler.
func (m wholeMessage) MarshalJSON() ([]byte, error) { return marshalMessage(m.of) }

// Requests and answers. The tags "doc" are part of the description.
type (
	// CreateSessionRequest starts a session with a first graph.
	CreateSessionRequest struct {
		Graph      message[pb.GraphDef, *pb.GraphDef]       `json:"graph_def,omitzero" doc:"The graph, as JSON."`
		GraphBytes []byte                                   `json:"graph_def_base64,omitzero" doc:"The graph as a serialized tensorflow.GraphDef in base64, instead of graph_def."`
		Config     message[pb.ConfigProto, *pb.ConfigProto] `json:"config,omitzero"`
		Target     string                                   `json:"target,omitzero" doc:"The address that the client uses."`
	}
	// CreateSessionResult is a new session.
	CreateSessionResult struct {
		Session      string `json:"session" doc:"Handle of the session. A client that has it can use the session."`
		GraphVersion int64  `json:"graph_version" doc:"Version of the graph, for extend."`
	}
	// ExtendSessionRequest adds nodes.
	ExtendSessionRequest struct {
		Graph      message[pb.GraphDef, *pb.GraphDef] `json:"graph_def,omitzero" doc:"The new nodes, as JSON."`
		GraphBytes []byte                             `json:"graph_def_base64,omitzero" doc:"The new nodes as a serialized tensorflow.GraphDef in base64, instead of graph_def."`
		Version    int64                              `json:"current_graph_version,omitzero" doc:"The graph must have this version."`
	}
	// ExtendSessionResult is the version of the graph.
	ExtendSessionResult struct {
		Version int64 `json:"new_graph_version"`
	}
	// RunRequest runs a step.
	RunRequest struct {
		Feeds   map[string]*Tensor                     `json:"feeds,omitzero" doc:"Tensors by the names of the outputs that they replace, such as x:0."`
		Fetches []string                               `json:"fetches,omitzero" doc:"Names of the outputs to return, such as y:0."`
		Targets []string                               `json:"targets,omitzero" doc:"Names of nodes to run without a result."`
		Options message[pb.RunOptions, *pb.RunOptions] `json:"options,omitzero"`
		Partial string                                 `json:"partial_run_handle,omitzero" doc:"Handle of the partial run that this part continues."`
		Form    string                                 `json:"form,omitzero" enum:"values,base64,bytes" doc:"Form of the elements in the answer: values (the default), base64, or bytes after the JSON."`
	}
	// RunResult is the result of a step.
	RunResult struct {
		Tensors  map[string]*Tensor                       `json:"tensors" doc:"Values of the fetches, by their names."`
		Metadata message[pb.RunMetadata, *pb.RunMetadata] `json:"metadata,omitzero" doc:"Traces that the options have asked for."`
	}
	// PartialRunRequest declares the feeds and fetches of a partial run.
	PartialRunRequest struct {
		Feeds   []string `json:"feeds,omitzero" doc:"Names of the outputs that parts will feed."`
		Fetches []string `json:"fetches,omitzero" doc:"Names of the outputs that parts will fetch."`
		Targets []string `json:"targets,omitzero" doc:"Names of nodes to run."`
	}
	// PartialRunResult is a partial run.
	PartialRunResult struct {
		Handle string `json:"partial_run_handle"`
	}
	// MakeCallableRequest prepares a step.
	MakeCallableRequest struct {
		Options message[pb.CallableOptions, *pb.CallableOptions] `json:"options"`
	}
	// MakeCallableResult is a prepared step.
	MakeCallableResult struct {
		Handle int64 `json:"handle"`
	}
	// RunCallableRequest runs a prepared step.
	RunCallableRequest struct {
		Feeds []*Tensor `json:"feeds,omitzero" doc:"In the order of the options."`
		Form  string    `json:"form,omitzero" enum:"values,base64,bytes" doc:"Form of the elements in the answer, as for run."`
	}
	// RunCallableResult is the result of a prepared step.
	RunCallableResult struct {
		Fetches  []*Tensor                                `json:"fetches" doc:"In the order of the options."`
		Metadata message[pb.RunMetadata, *pb.RunMetadata] `json:"metadata,omitzero"`
	}
	// ResetRequest drops state.
	ResetRequest struct {
		Containers    []string `json:"containers,omitzero" doc:"Containers to drop; all without one."`
		DeviceFilters []string `json:"device_filters,omitzero" doc:"Only the tasks of these devices are reset."`
	}
	// Empty is an answer without content.
	Empty struct{}
	// Status is google.rpc.Status, the answer to a request that fails.
	Status struct {
		Code    int32    `json:"code" doc:"Code of the error, as in gRPC."`
		Message string   `json:"message"`
		Details []detail `json:"details" doc:"Always empty."`
	}
)

// detail is an element of the details of an error.
type detail map[string]string

// graphOf returns the graph of a request, after its nodes and the memory that it will take have
// been checked. The memory is held until the caller calls release.
func (c *call) graphOf(graph *pb.GraphDef, content []byte) (out *pb.GraphDef, release func(), err error) {
	switch {
	case graph != nil && content != nil:
		return nil, nil, status.InvalidArgumentf("graph_def and graph_def_base64 are both given")
	case content == nil:
		if graph == nil {
			return nil, func() {}, nil
		}
		if content, err = proto.Marshal(graph); err != nil {
			return nil, nil, status.InvalidArgumentf("graph_def: %w", err)
		}
		release, err = rpc.AdmitGraph(content, c.quota)
		return graph, release, err
	}
	if release, err = rpc.AdmitGraph(content, c.quota); err != nil {
		return nil, nil, err
	}
	graph = &pb.GraphDef{}
	if err := proto.Unmarshal(content, graph); err != nil {
		release()
		return nil, nil, status.InvalidArgumentf("graph_def_base64 is no tensorflow.GraphDef: %w", err)
	}
	return graph, release, nil
}
