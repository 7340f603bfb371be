package server

import (
	"context"
	"sync"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// inspected is a task that describes itself: this one, or a client of another one.
type inspected interface {
	GetLog(context.Context, *pb.GetLogRequest) (*pb.Log, error)
	GetGraph(context.Context, *pb.GetGraphRequest) (*pb.PlacedGraph, error)
	GetScalars(context.Context, *pb.GetScalarsRequest) (*pb.Scalars, error)
}

// inspected returns a task of the cluster.
func (i *inspection) inspected(task cluster.Task) (inspected, error) {
	if task == i.server.def.Self() {
		return i, nil
	}
	return i.peers.Worker(task)
}

// askAll calls a function with each task of the cluster, concurrently. What the function returns is
// called for one task at a time, in no order. The result says why tasks have not answered, by their
// names.
func (i *inspection) askAll(ctx context.Context, ask func(context.Context, inspected) (add func(), err error)) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	missing := map[string]string{}
	var mu sync.Mutex // guards missing, and is held by add
	var all sync.WaitGroup
	for _, task := range i.server.def.Cluster.Tasks() {
		all.Go(func() {
			t, err := i.inspected(task)
			add := func() {}
			if err == nil {
				add, err = ask(ctx, t)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missing[task.String()] = err.Error()
				return
			}
			add()
		})
	}
	all.Wait()
	return missing
}

// GetGraph implements [rpc.Inspection].
func (i *inspection) GetGraph(ctx context.Context, req *pb.GetGraphRequest) (*pb.PlacedGraph, error) {
	if req.GetTask() == "" {
		return i.server.task.Master.PlacedGraph(req.GetSession())
	}
	task, err := cluster.ParseTask(req.GetTask())
	if err != nil {
		return nil, status.InvalidArgumentf("%w", err)
	}
	t, err := i.inspected(task)
	if err != nil {
		return nil, err
	}
	return t.GetGraph(ctx, &pb.GetGraphRequest{Session: req.GetSession()})
}

// GetScalars implements [rpc.Inspection].
func (i *inspection) GetScalars(ctx context.Context, req *pb.GetScalarsRequest) (*pb.Scalars, error) {
	out := &pb.Scalars{}
	if !req.GetCluster() {
		for _, s := range i.server.task.Scalars.Series() {
			series := &pb.ScalarSeries{Task: i.server.def.Self().String(), Tag: validText(s.Tag)}
			for _, p := range s.Points {
				series.TimesNanos = append(series.TimesNanos, p.Time.UnixNano())
				series.Steps = append(series.Steps, p.Step)
				series.Values = append(series.Values, p.Value)
			}
			out.Series = append(out.Series, series)
		}
		return out, nil
	}
	i.askAll(ctx, func(ctx context.Context, t inspected) (func(), error) {
		found, err := t.GetScalars(ctx, &pb.GetScalarsRequest{})
		return func() { out.Series = append(out.Series, found.GetSeries()...) }, err
	})
	return out, nil
}
