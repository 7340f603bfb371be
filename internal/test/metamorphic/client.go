package metamorphic

import (
	"context"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/tensor"
)

// clientSession is a session of package weft.
type clientSession struct {
	session *weft.Session
	graph   *graph.Graph
}

// Dial opens a session of package weft for a program. Its state is its own.
func Dial(target string, g *Graph, opts ...weft.SessionOption) (Session, error) {
	imported, err := graph.Import(g.Def, kernel.Default, graph.ImportOptions{})
	if err != nil {
		return nil, err
	}
	s, err := weft.NewSession(target, imported, append(opts, weft.WithIsolation())...)
	if err != nil {
		return nil, err
	}
	return clientSession{s, imported}, nil
}

// Init implements [Session].
func (s clientSession) Init(ctx context.Context, names []string) error {
	targets := make([]*graph.Node, len(names))
	for i, name := range names {
		targets[i] = s.graph.Node(name)
	}
	return s.session.Exec(ctx, nil, targets...)
}

func (s clientSession) output(name string) graph.Output {
	node, i := graph.ParseInput(name)
	return s.graph.Node(node).Out(i)
}

// Step implements [Session].
func (s clientSession) Step(ctx context.Context, feeds map[string]tensor.Tensor, fetches []string) ([]tensor.Tensor, error) {
	fed := weft.Feeds{}
	for name, v := range feeds {
		fed[s.output(name)] = v
	}
	outs := make([]graph.Output, len(fetches))
	for i, name := range fetches {
		outs[i] = s.output(name)
	}
	return s.session.Fetch(ctx, fed, outs...)
}

// Close implements [Session].
func (s clientSession) Close() error { return s.session.Close() }
