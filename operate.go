package weft

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// LogLine is a line of the log of a task.
type LogLine struct {
	Time    time.Time
	Level   string // "debug", "info", "warn" or "error"
	Message string
	Fields  []LogField
}

// LogField is a field of a line. The field "task" names the task that has written it.
type LogField struct{ Name, Value string }

// ClusterLog returns the last lines of the logs of all tasks of the target's cluster, the oldest
// first, and why tasks have sent none, by their names. It returns lines of at least a level,
// "debug" to "error", and at most a number of each task; 0 for 200. Lines exist only of the levels
// that a task logs.
func ClusterLog(ctx context.Context, target, level string, lines int, opts ...TargetOption) ([]LogLine, map[string]string, error) {
	var out []LogLine
	var missing map[string]string
	err := operate(ctx, target, opts, func(ctx context.Context, m interface {
		GetLog(context.Context, *pb.GetLogRequest) (*pb.Log, error)
	},
	) error {
		log, err := m.GetLog(ctx, &pb.GetLogRequest{Cluster: true, Level: level, Lines: int64(lines)})
		for _, l := range log.GetLines() {
			line := LogLine{Time: time.Unix(0, l.GetTimeNanos()), Level: l.GetLevel(), Message: l.GetMessage()}
			for _, f := range l.GetFields() {
				line.Fields = append(line.Fields, LogField{f.GetName(), f.GetValue()})
			}
			out = append(out, line)
		}
		missing = log.GetMissing()
		return err
	})
	return out, missing, err
}

// SetLogLevel changes the level of the log of the target's task, "debug" to "error", and returns
// the level before and after. An empty level changes nothing. It fails with PermissionDenied for
// callers that are not operators.
func SetLogLevel(ctx context.Context, target, level string, opts ...TargetOption) (before, after string, err error) {
	err = operate(ctx, target, opts, func(ctx context.Context, m interface {
		SetLogLevel(context.Context, *pb.SetLogLevelRequest) (*pb.SetLogLevelResponse, error)
	},
	) error {
		resp, err := m.SetLogLevel(ctx, &pb.SetLogLevelRequest{Level: level})
		before, after = resp.GetBefore(), resp.GetLevel()
		return err
	})
	return before, after, err
}

// CloseSessions closes the session of the target's master with a handle, or all sessions of an
// owner. Exactly one of both is given. The first 8 characters of a handle suffice. Running steps
// fail with Cancelled. It returns the sessions as they were, and fails with NotFound if there are
// none. Clients may close the sessions that they have created, operators all.
func CloseSessions(ctx context.Context, target, handle, owner string, opts ...TargetOption) ([]SessionStatus, error) {
	var out []SessionStatus
	err := operate(ctx, target, opts, func(ctx context.Context, m interface {
		CloseSessions(context.Context, *pb.CloseSessionsRequest) (*pb.CloseSessionsResponse, error)
	},
	) error {
		resp, err := m.CloseSessions(ctx, &pb.CloseSessionsRequest{Handle: handle, Owner: owner})
		for _, s := range resp.GetClosed() {
			out = append(out, sessionStatus(s))
		}
		return err
	})
	return out, err
}

// operate calls a function with the master at a target, if it has the methods of M.
func operate[M any](ctx context.Context, target string, opts []TargetOption, call func(context.Context, M) error) error {
	master, done, err := connectOnce(target, opts)
	if err != nil {
		return err
	}
	defer done(ctx)
	m, ok := master.(M)
	if !ok {
		return status.Unimplementedf("the target %s has no such call", target)
	}
	return call(ctx, m)
}
