package master

import (
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/status"
)

// maxOrders bounds how many ways to order the names of one session's requests are remembered.
const maxOrders = 4096

// order is a request as a client writes it, which most clients do in the same way every time: what
// its names stand for in its plan.
type order struct {
	feeds, fetches, targets []string
	collective              int64 // key that the client gives to the step
	plan                    *plan

	feedKeys []string // rendezvous key of each feed; "" for one that nothing consumes
	outputs  []string // fetches without repetition
	keys     []string // rendezvous keys of outputs
}

var hashSeed = maphash.MakeSeed()

// matches reports whether a request has the names of o in the order of o.
func (o *order) matches(req *message.RunStepRequest) bool {
	return slices.EqualFunc(req.Feeds, o.feeds, func(f message.NamedTensor, name string) bool { return f.Name == name }) &&
		slices.Equal(req.Fetches, o.fetches) && slices.Equal(req.Targets, o.targets) &&
		req.Options.GetExperimental().GetCollectiveGraphKey() == o.collective
}

// hashRequest mixes all names of a request, in their order.
func hashRequest(req *message.RunStepRequest) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for i := range req.Feeds {
		_, _ = h.WriteString(req.Feeds[i].Name)
		_ = h.WriteByte(0)
	}
	_ = h.WriteByte(1)
	for _, names := range [...][]string{req.Fetches, req.Targets} {
		for _, name := range names {
			_, _ = h.WriteString(name)
			_ = h.WriteByte(0)
		}
		_ = h.WriteByte(1)
	}
	maphash.WriteComparable(&h, req.Options.GetExperimental().GetCollectiveGraphKey())
	return h.Sum64()
}

// order returns what a request asks for, with a plan that is ready and has one more user, who must
// call release. It makes the plan if there is none.
func (s *session) order(ctx context.Context, l limit, req *message.RunStepRequest) (*order, error) {
	hash := hashRequest(req)
	s.mu.Lock()
	if s.closed != nil {
		s.mu.Unlock()
		return nil, errClosed
	}
	o := s.orders[hash]
	if o != nil && o.plan.users > 0 && o.matches(req) {
		s.useLocked(o.plan)
		s.mu.Unlock()
		return o, nil
	}
	s.mu.Unlock()
	o = &order{
		fetches: slices.Clone(req.Fetches), targets: slices.Clone(req.Targets),
		collective: req.Options.GetExperimental().GetCollectiveGraphKey(),
	}
	for i := range req.Feeds {
		o.feeds = append(o.feeds, req.Feeds[i].Name)
	}
	ctx, cancel := l.context(ctx)
	defer cancel()
	if err := s.resolve(ctx, o); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.orders) >= maxOrders {
		clear(s.orders)
	}
	s.orders[hash] = o
	return o, nil
}

// resolve finds the plan of an order and what its names stand for.
func (s *session) resolve(ctx context.Context, o *order) error {
	sig := signature{
		feeds: sorted(o.feeds), fetches: slices.Compact(sorted(o.fetches)), targets: slices.Compact(sorted(o.targets)),
		collective: o.collective,
	}
	for i := 1; i < len(sig.feeds); i++ {
		if sig.feeds[i] == sig.feeds[i-1] {
			return status.InvalidArgumentf("Endpoint \"%s\" fed more than once.", sig.feeds[i])
		}
	}
	var err error
	if o.plan, err = s.plan(ctx, sig); err != nil {
		return err
	}
	o.bind()
	return nil
}

// bind looks the names of an order up in its plan.
func (o *order) bind() {
	for _, name := range o.feeds {
		o.feedKeys = append(o.feedKeys, o.plan.feedKeys[name])
	}
	o.outputs = unique(o.fetches)
	for _, name := range o.outputs {
		o.keys = append(o.keys, o.plan.fetchKeys[name])
	}
}

func sorted(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return out
}

// signature is what one kind of step feeds, fetches and runs, each in order.
type signature struct {
	feeds, fetches, targets []string
	partial                 bool
	collective              int64 // key that the client gives to the step
}

// key returns a text that no other signature has: names contain no control characters.
func (sig signature) key() string {
	var b strings.Builder
	for _, names := range [...][]string{sig.feeds, sig.fetches, sig.targets} {
		for _, name := range names {
			b.WriteString(name)
			b.WriteByte(0)
		}
		b.WriteByte(1)
	}
	if sig.partial {
		b.WriteString("partial")
	}
	if sig.collective != 0 {
		b.WriteString(strconv.FormatInt(sig.collective, 10))
	}
	return b.String()
}
