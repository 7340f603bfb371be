package worker

import (
	"context"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// partial is a run that several RunGraph calls share: each brings some feeds and takes some
// fetches. It ends when its executors do, and the last call waits for that.
type partial struct {
	*run
	done chan struct{} // closed when the executors have ended
	err  error         // error of the executors; set before done is closed
}

// runPartial serves one call: the first starts the executors. It takes over the use of r's graph.
func (w *Worker) runPartial(ctx context.Context, r *run, req *message.RunGraphRequest, resp *message.RunGraphResponse) error {
	p, first, err := w.steps.beginPartial(req.StepID, r)
	if !first {
		r.graph.release()
	}
	if err != nil {
		return err
	}
	if first {
		go p.start()
	}
	stop := context.AfterFunc(ctx, func() { p.fail(status.FromContext(ctx, "running the step")) })
	defer stop()
	if err := p.store(req.Send); err != nil {
		return p.explain(err)
	}
	for _, key := range req.RecvKeys {
		t, err := p.await(key)
		if err != nil {
			return p.explain(err)
		}
		resp.Recv = append(resp.Recv, message.NamedTensor{Name: key, Tensor: t})
	}
	if req.IsLastPartial {
		<-p.done
		return p.err
	}
	return nil
}

// beginPartial returns the partial run of a step, and whether this call has created it from r.
func (s *steps) beginPartial(id int64, r *run) (p *partial, first bool, err error) {
	s.mu.Lock()
	if st := s.byID[id]; st != nil && st.partial != nil && st.session == r.session {
		defer s.mu.Unlock()
		return st.partial, false, nil
	}
	s.mu.Unlock()
	r.ctx.Begin(context.Background())
	st, err := s.begin(id, r)
	if err != nil {
		return nil, false, err
	}
	r.step = st
	s.mu.Lock()
	if p = st.partial; p == nil {
		p, first = &partial{run: r, done: make(chan struct{})}, true
		st.partial = p
	}
	s.mu.Unlock()
	if !first {
		s.finish(st, r)
	}
	return p, first, nil
}

// start runs the executors. The run is part of its step until they have ended.
func (p *partial) start() {
	p.err = p.execute(nil, nil)
	p.ctx.Finish()
	p.graph.release()
	p.worker.steps.finish(p.step, p.run)
	close(p.done)
}

// await waits for a tensor until the executors have ended, which they do soon after an error.
func (p *partial) await(key string) (tensor.Tensor, error) {
	if _, err := kernel.ParseKey(key); err != nil {
		return tensor.Tensor{}, err
	}
	type result struct {
		t    tensor.Tensor
		dead bool
		err  error
	}
	came := make(chan result, 1)
	p.step.table.RecvText(key, func(t tensor.Tensor, dead bool, err error) { came <- result{t, dead, err} })
	var got result
	select {
	case got = <-came:
	case <-p.done:
		select {
		case got = <-came:
		default:
			return tensor.Tensor{}, status.Internalf("No node of the graph produces %s", key)
		}
	}
	if got.err == nil && got.dead {
		return got.t, deadFetch(key)
	}
	if got.err != nil {
		return got.t, got.err
	}
	return onHost(got.t)
}

// explain ends the run because of err. It returns the error of the executors if err only follows
// from that.
func (p *partial) explain(err error) error {
	p.fail(err)
	<-p.done
	if p.err != nil && !status.IsDerived(p.err) {
		return p.err
	}
	return err
}
