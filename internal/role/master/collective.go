package master

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// keySeed is the key of graphs whose collective operations get their instance keys as inputs, and
// the initial value for the keys of others.
const keySeed uint64 = 0x8774aa605c729c72

// collectiveKey returns the key under which masters agree on the numbers of the steps that run g,
// as TensorFlow computes it from the instance keys of the collective operations. It is 0 for a
// graph without any.
func collectiveKey(g *graph.Graph) int64 {
	c := collectiveOps{library: g.Library, instances: map[int32]bool{}, seen: map[string]bool{}}
	for n := range g.Nodes() {
		c.add(n.Op.Name, n.Attrs)
	}
	switch {
	case len(c.instances) > 0:
		hash := keySeed
		for _, instance := range slices.Sorted(maps.Keys(c.instances)) {
			hash = combine(uint64(int64(instance)), hash)
		}
		return int64(hash)
	case c.byInputs:
		seed := keySeed
		return int64(seed)
	}
	return 0
}

func combine(a, b uint64) uint64 { return a ^ (b + 0x9e3779b97f4a7800 + a<<10 + a>>4) }

// collectiveOps describes the collective operations of a graph and of the functions that it calls.
type collectiveOps struct {
	library   *graph.Library
	instances map[int32]bool  // instance keys in attributes
	byInputs  bool            // there are operations with instance keys as inputs
	seen      map[string]bool // functions visited
}

func (c *collectiveOps) add(op string, attrs opdef.Attrs) {
	switch {
	case !strings.HasPrefix(op, "Collective") || op == "CollectiveAssignGroupV2":
		c.call(op)
	case op == "CollectiveReduce" || op == "CollectiveGather" || op == "CollectiveBcastSend" || op == "CollectiveBcastRecv":
		if key, ok := attrs["instance_key"].(int64); ok {
			c.instances[int32(key)] = true
		}
	default:
		c.byInputs = true
	}
	for name := range attrs.Functions() {
		c.call(name)
	}
}

// call adds the operations of a function, if there is one of that name.
func (c *collectiveOps) call(name string) {
	f, ok := c.library.Lookup(name)
	if !ok || c.seen[name] {
		return
	}
	c.seen[name] = true
	for i := range f.Def.Nodes {
		c.add(f.Def.Nodes[i].Op, f.Def.Nodes[i].Attrs)
	}
}

// number assigns the step its number: a random one, or the number that all masters agree on if the
// step has collective operations. The caller must call retire.
func (st *step) number(ctx context.Context) (err error) {
	if st.plan.collective == 0 {
		st.id = newStepID()
		return nil
	}
	if st.session.master.Sequences == nil {
		return status.Internalf("Runtime not initialized with CollectiveExecutorMgr")
	}
	st.id, err = st.session.master.Sequences.Acquire(ctx, st.plan.collective, st.session.askLeader(st.plan.collective))
	return err
}

// retire ends the step and makes its tasks forget it.
//
// The number of a collective step that has failed is used again, so it is released only after all
// tasks have forgotten the step. The own task forgets it before retire returns: other tasks may ask
// it for buffers of the client's next attempt.
func (st *step) retire(err error) {
	s, key := st.session, st.plan.collective
	if key == 0 || err == nil {
		st.cleanup.StepId = st.id
		s.cleanup(st.plan, &st.cleanup)
		if key != 0 {
			s.master.Sequences.Release(key, true)
		}
		return
	}
	var others []*planPartition
	for i := range st.plan.partitions {
		if pt := &st.plan.partitions[i]; pt.task == s.task {
			s.cleanupPartition(pt, st.id)
		} else {
			others = append(others, pt)
		}
	}
	s.master.background.Go(func() {
		defer s.master.Sequences.Release(key, false)
		var wg sync.WaitGroup
		for _, pt := range others {
			wg.Go(func() { s.cleanupPartition(pt, st.id) })
		}
		wg.Wait()
	})
}

// forgetNumbers makes the next session ask the leader for the numbers of its steps.
func (s *session) forgetNumbers() {
	if s.master.Sequences == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.plans {
		select {
		case <-p.ready:
			if p.collective != 0 {
				s.master.Sequences.Forget(p.collective)
			}
		default: // still being made: none of its steps has a number
		}
	}
}

// askLeader returns a function that asks the leader of the session's collective groups for the
// number of the next step with the given key. It is nil if this task is the leader.
func (s *session) askLeader(key int64) func(context.Context) (int64, error) {
	leader := s.config.GetExperimental().GetCollectiveGroupLeader()
	if leader == "" {
		return nil
	}
	task, err := cluster.ParseTask(leader)
	if err == nil && task == s.task {
		return nil
	}
	return func(ctx context.Context) (int64, error) {
		if err != nil {
			return 0, status.InvalidArgumentf("the leader of collective groups: %w", err)
		}
		w, err := s.workers.Worker(task)
		if err != nil {
			return 0, err
		}
		resp, err := w.GetStepSequence(ctx, &pb.GetStepSequenceRequest{GraphKey: []int64{key}})
		if err != nil {
			return 0, fromTask(task, err)
		}
		for _, seq := range resp.GetStepSequence() {
			if seq.GetGraphKey() == key && seq.GetNextStepId() >= 0 {
				return seq.GetNextStepId(), nil
			}
		}
		return 0, status.Internalf("%v gives no numbers to the steps of graph %d", task, key)
	}
}
