package master

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

const (
	// maxFailures is the number of different errors that a master remembers.
	maxFailures = 50
	// maxFailureText is the length of the text of an error that is remembered, in bytes.
	maxFailureText = 2 << 10
)

// failures remembers the errors of steps, for operators. Equal errors of one session are one entry.
// The zero value is empty.
type failures struct {
	mu   sync.Mutex
	list []*pb.FailureInfo // the one seen last at the end; guarded by mu
}

// add adds the error of a step.
func (f *failures) add(st *step, err error) {
	text := status.From(err).Message
	if len(text) > maxFailureText {
		text = text[:maxFailureText] + "…"
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	info := &pb.FailureInfo{
		Count: 1, LastNanos: time.Now().UnixNano(), Session: st.session.shownHandle(), Step: st.id,
		Code: status.CodeOf(err).String(), Message: text,
	}
	info.FirstNanos = info.LastNanos
	if st.errs.HasRoot() {
		info.Task = st.failed.String()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, old := range f.list {
		if old.GetSession() == info.GetSession() && old.GetMessage() == text && old.GetCode() == info.GetCode() {
			info.FirstNanos, info.Count = old.GetFirstNanos(), old.GetCount()+1
			f.list = slices.Delete(f.list, i, i+1)
			break
		}
	}
	if len(f.list) == maxFailures {
		f.list = slices.Delete(f.list, 0, 1)
	}
	f.list = append(f.list, info)
}

// Failures returns the errors of steps, the one seen last first.
func (m *Master) Failures() []*pb.FailureInfo {
	m.failures.mu.Lock()
	defer m.failures.mu.Unlock()
	out := slices.Clone(m.failures.list) // entries are not modified
	slices.Reverse(out)
	return out
}
