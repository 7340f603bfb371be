package weft

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/internal/sys/callsite"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// run sends a request and returns the values of its fetches and what the master recorded, if the
// settings ask for that. It ends the use of the request.
func (s *Session) run(ctx context.Context, req *stepRequest, set runSettings) ([]tensor.Tensor, *Metadata, error) {
	r, err := s.ready(ctx)
	if err != nil {
		return nil, nil, err
	}
	if set.timeout > 0 && !r.inProcess { // a master in this process enforces the limit itself
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.timeout)
		defer cancel()
	}
	req.Session, req.Options, req.StoreErrorsInBody = r.handle, set.options, true
	if r.inProcess {
		req.Into = &req.response
	} else { // the transport may deliver the request twice
		req.RequestID = requestID()
	}
	reusable := false
	defer func() { s.endRequest(req, reusable) }()
	for i := range req.Feeds {
		if req.Feeds[i].Tensor, err = r.lend(req.Feeds[i].Tensor); err != nil {
			req.Feeds = req.Feeds[:i] // the others are still the caller's
			return nil, nil, err
		}
	}
	resp, err := r.master.RunStep(ctx, &req.RunStepRequest)
	if err == nil && resp.Err != nil {
		err = resp.Err
	}
	if err != nil {
		return nil, nil, s.explain(ctx, err)
	}
	var recorded *Metadata
	if set.traced {
		recorded = &Metadata{pb: resp.Metadata}
	}
	out, err := inOrder(req.Fetches, resp.Tensors)
	reusable = err == nil
	return out, recorded, err
}

// lend returns a feed for the time of a call. A master in this process may keep a feed for longer,
// in a variable or a fetch, so memory that the caller may write to is copied.
func (r *remoteSession) lend(t tensor.Tensor) (tensor.Tensor, error) {
	if r.inProcess && !t.Exclusive() {
		return t.Clone()
	}
	return t.Retain(), nil
}

// explain returns errClosed instead of the error of a call that Close has aborted. To the errors of
// nodes it adds the line of the program, and to some common mistakes what to do.
func (s *Session) explain(ctx context.Context, err error) error {
	if s.ctx.Err() != nil && status.CodeOf(err) == status.Aborted {
		return closedError(ctx)
	}
	text := err.Error()
	if hint := hintFor(text); hint != "" {
		return status.Errorf(status.CodeOf(err), "%s%w\n%s", callsite.FindIn(ctx), err, hint)
	}
	if strings.Contains(text, "{{node ") {
		return status.Errorf(status.CodeOf(err), "%s%w", callsite.FindIn(ctx), err)
	}
	return err
}

// hintFor returns what a program can do about a common mistake, or "".
func hintFor(text string) string {
	switch {
	case strings.Contains(text, "You must feed a value for placeholder"):
		return "put it into the feeds of the step"
	case strings.Contains(text, "Attempting to use uninitialized value"), strings.Contains(text, "Could not find variable"),
		strings.Contains(text, "from Container: localhost. This could mean that the variable was uninitialized"):
		return "run train.VariablesInitializer, or restore a checkpoint, before other steps"
	}
	return ""
}

// requestID returns a random number, never 0, by which a master recognizes a request that arrives
// twice.
func requestID() int64 {
	for {
		if id := int64(rand.Uint64()); id != 0 {
			return id
		}
	}
}

// inOrder returns the tensors of the given names. A name that was requested twice may be in the
// response only once.
func inOrder(names []string, got []message.NamedTensor) ([]tensor.Tensor, error) {
	out := make([]tensor.Tensor, len(names))
	var at map[string]int // position in got by name; nil while the two are in the same order
	for i, name := range names {
		if at == nil && i < len(got) && got[i].Name == name {
			out[i] = got[i].Tensor
			continue
		}
		if at == nil {
			at = make(map[string]int, len(got))
			for j := range got {
				at[got[j].Name] = j
			}
		}
		j, ok := at[name]
		if !ok {
			return nil, status.Internalf("the response has no value for %s", name)
		}
		if out[i] = got[j].Tensor; slices.Contains(names[:i], name) {
			out[i] = got[j].Tensor.Retain()
		}
	}
	return out, nil
}
