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

// maxRequestKeys bounds the request keys of one session.
const maxRequestKeys = 4096

// requestKey caches, for one exact spelling of a request, the plan and the rendezvous keys that its
// names resolve to. Most clients spell a request the same way every time.
type requestKey struct {
	feeds, fetches, targets []string
	collective              int64 // collective graph key of RunOptions
	plan                    *plan

	feedKeys []string // rendezvous key of each feed; "" for one without a consumer
	outputs  []string // fetches without repetition
	keys     []string // rendezvous keys of outputs
}

var hashSeed = maphash.MakeSeed()

// matches reports whether a request has the names of k, in the same order.
func (k *requestKey) matches(req *message.RunStepRequest) bool {
	return slices.EqualFunc(req.Feeds, k.feeds, func(f message.NamedTensor, name string) bool { return f.Name == name }) &&
		slices.Equal(req.Fetches, k.fetches) && slices.Equal(req.Targets, k.targets) &&
		req.Options.GetExperimental().GetCollectiveGraphKey() == k.collective
}

// hashRequest returns a hash of all names of a request, in their order.
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

// requestKey returns the key of a request, with a plan that is ready and has one more user, who
// must call release. It makes the plan if there is none.
func (s *session) requestKey(ctx context.Context, d deadline, req *message.RunStepRequest) (*requestKey, error) {
	hash := hashRequest(req)
	s.mu.Lock()
	if s.closed != nil {
		s.mu.Unlock()
		return nil, errClosed
	}
	k := s.requestKeys[hash]
	if k != nil && k.plan.users > 0 && k.matches(req) {
		s.useLocked(k.plan)
		s.mu.Unlock()
		return k, nil
	}
	s.mu.Unlock()
	k = &requestKey{
		fetches: slices.Clone(req.Fetches), targets: slices.Clone(req.Targets),
		collective: req.Options.GetExperimental().GetCollectiveGraphKey(),
	}
	for i := range req.Feeds {
		k.feeds = append(k.feeds, req.Feeds[i].Name)
	}
	ctx, cancel := d.context(ctx)
	defer cancel()
	if err := s.resolve(ctx, k); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requestKeys) >= maxRequestKeys {
		clear(s.requestKeys)
	}
	s.requestKeys[hash] = k
	return k, nil
}

// resolve finds the plan of a key and the rendezvous keys of its names.
func (s *session) resolve(ctx context.Context, k *requestKey) error {
	sig := signature{
		feeds: sorted(k.feeds), fetches: slices.Compact(sorted(k.fetches)), targets: slices.Compact(sorted(k.targets)),
		collective: k.collective,
	}
	for i := 1; i < len(sig.feeds); i++ {
		if sig.feeds[i] == sig.feeds[i-1] {
			return status.InvalidArgumentf("Endpoint \"%s\" fed more than once.", sig.feeds[i])
		}
	}
	var err error
	if k.plan, err = s.plan(ctx, sig); err != nil {
		return err
	}
	k.bind()
	return nil
}

// bind looks up the names of a key in its plan.
func (k *requestKey) bind() {
	for _, name := range k.feeds {
		k.feedKeys = append(k.feedKeys, k.plan.feedKeys[name])
	}
	k.outputs = unique(k.fetches)
	for _, name := range k.outputs {
		k.keys = append(k.keys, k.plan.fetchKeys[name])
	}
}

func sorted(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return out
}

// signature is the set of feeds, fetches and targets of a kind of step, each sorted.
type signature struct {
	feeds, fetches, targets []string
	partial                 bool
	collective              int64 // collective graph key of RunOptions
}

// key returns a text that is unique to the signature: names contain no control characters.
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
