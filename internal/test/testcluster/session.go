package testcluster

import (
	"context"
	"fmt"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Session is a client's session on one of the cluster's masters. Its methods make the calls of a
// client.
type Session struct {
	Node    *Node
	Handle  string
	Version int64 // of the graph

	cluster *Cluster
}

// Graph converts a graph in the form of package graphtext to a message.
func (c *Cluster) Graph(text string) (*pb.GraphDef, error) {
	g, err := graphtext.Parse(c.options.Kernels, text)
	if err != nil {
		return nil, err
	}
	return pbconv.GraphToProto(g.Def())
}

// Session creates a session with a graph in text form; config may be nil.
func (c *Cluster) Session(ctx context.Context, n *Node, text string, config *pb.ConfigProto) (*Session, error) {
	def, err := c.Graph(text)
	if err != nil {
		return nil, err
	}
	return c.SessionOf(ctx, n, def, config)
}

// SessionOf creates a session with a graph; config may be nil.
func (c *Cluster) SessionOf(ctx context.Context, n *Node, def *pb.GraphDef, config *pb.ConfigProto) (*Session, error) {
	resp, err := n.Master.CreateSession(ctx, &pb.CreateSessionRequest{
		GraphDef: def, Config: config, Target: "grpc://" + c.spec.Address(n.Task),
	})
	if err != nil {
		return nil, err
	}
	return &Session{Node: n, Handle: resp.GetSessionHandle(), cluster: c}, nil
}

// Extend adds nodes to the graph. text is the whole graph in text form, including the session's
// nodes that are used as inputs. Only the nodes after the first skip ones are sent.
func (s *Session) Extend(ctx context.Context, text string, skip int) error {
	def, err := s.cluster.Graph(text)
	if err != nil {
		return err
	}
	if skip > len(def.Node) {
		return fmt.Errorf("the graph has %d nodes", len(def.Node))
	}
	def.Node = def.Node[skip:]
	resp, err := s.Node.Master.ExtendSession(ctx, &pb.ExtendSessionRequest{
		SessionHandle: s.Handle, GraphDef: def, CurrentGraphVersion: s.Version,
	})
	if err == nil {
		s.Version = resp.GetNewGraphVersion()
	}
	return err
}

// Feeds are the fed tensors by name.
type Feeds map[string]tensor.Tensor

// Run runs a step and returns the values of its fetches in order. All fetches must be float
// scalars.
func (s *Session) Run(ctx context.Context, feeds Feeds, fetches []string, targets ...string) ([]float32, error) {
	resp, err := s.Step(ctx, feeds, fetches, targets, nil)
	if err != nil {
		return nil, err
	}
	return scalars(resp, fetches)
}

// Step runs a step like a client's request: errors are returned in the body.
func (s *Session) Step(ctx context.Context, feeds Feeds, fetches, targets []string, options *pb.RunOptions) (*message.RunStepResponse, error) {
	return s.request(ctx, &message.RunStepRequest{
		Session: s.Handle, Feeds: feeds.named(), Fetches: fetches, Targets: targets, Options: options, StoreErrorsInBody: true,
	})
}

func (s *Session) request(ctx context.Context, req *message.RunStepRequest) (*message.RunStepResponse, error) {
	resp, err := s.Node.Master.RunStep(ctx, req)
	if err == nil && resp.Err != nil {
		return nil, resp.Err
	}
	return resp, err
}

func (f Feeds) named() []message.NamedTensor {
	out := make([]message.NamedTensor, 0, len(f))
	for name, t := range f {
		out = append(out, message.NamedTensor{Name: name, Tensor: t})
	}
	return out
}

func scalars(resp *message.RunStepResponse, fetches []string) ([]float32, error) {
	byName := map[string]*tensor.Tensor{}
	for i := range resp.Tensors {
		byName[resp.Tensors[i].Name] = &resp.Tensors[i].Tensor
	}
	out := make([]float32, len(fetches))
	for i, name := range fetches {
		t := byName[name]
		if t == nil || t.DType() != tensor.Float32 || t.NumElements() != 1 {
			return nil, status.Internalf("fetch %s is not a scalar of type float: %v", name, t)
		}
		out[i] = tensor.Value[float32](t)
	}
	for i := range resp.Tensors {
		resp.Tensors[i].Tensor.Release()
	}
	return out, nil
}

// PartialSetup starts a partial run and returns its handle.
func (s *Session) PartialSetup(ctx context.Context, feeds, fetches []string, targets ...string) (string, error) {
	resp, err := s.Node.Master.PartialRunSetup(ctx, &pb.PartialRunSetupRequest{
		SessionHandle: s.Handle, Feed: feeds, Fetch: fetches, Target: targets,
	})
	return resp.GetPartialRunHandle(), err
}

// PartialRun runs one part of a partial run.
func (s *Session) PartialRun(ctx context.Context, handle string, feeds Feeds, fetches ...string) ([]float32, error) {
	resp, err := s.request(ctx, &message.RunStepRequest{
		Session: s.Handle, Feeds: feeds.named(), Fetches: fetches, PartialRun: handle, StoreErrorsInBody: true,
	})
	if err != nil {
		return nil, err
	}
	return scalars(resp, fetches)
}

// Close closes the session.
func (s *Session) Close(ctx context.Context) error {
	_, err := s.Node.Master.CloseSession(ctx, &pb.CloseSessionRequest{SessionHandle: s.Handle})
	return err
}
