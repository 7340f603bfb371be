package server

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/weft-ml/weft/internal/inspect/logging"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/audit"
	"github.com/weft-ml/weft/status"
)

const (
	// defaultLines is the number of lines of each task that GetLog returns if none is given.
	defaultLines = 200
	// maxAnswerLines bounds the lines of all tasks in one answer.
	maxAnswerLines = 10_000
)

// GetLog implements [rpc.Inspection].
func (i *inspection) GetLog(ctx context.Context, req *pb.GetLogRequest) (*pb.Log, error) {
	level := slog.LevelDebug
	if name := req.GetLevel(); name != "" {
		var err error
		if level, err = logging.ParseLevel(name); err != nil {
			return nil, status.InvalidArgumentf("%w", err)
		}
	}
	if req.GetLines() < 0 {
		return nil, status.InvalidArgumentf("%d lines of the log: the number cannot be negative", req.GetLines())
	}
	n := min(cmp.Or(req.GetLines(), defaultLines), maxAnswerLines)
	if !req.GetCluster() {
		out := &pb.Log{}
		for _, l := range i.server.lines.Lines(int(n), level) {
			out.Lines = append(out.Lines, logLine(&l))
		}
		return out, nil
	}
	return i.clusterLog(ctx, &pb.GetLogRequest{Level: req.GetLevel(), Lines: n})
}

// clusterLog asks all tasks for their lines, and returns them in the order of time.
func (i *inspection) clusterLog(ctx context.Context, req *pb.GetLogRequest) (*pb.Log, error) {
	out := &pb.Log{}
	out.Missing = i.askAll(ctx, func(ctx context.Context, t inspected) (func(), error) {
		lines, err := t.GetLog(ctx, req)
		return func() { out.Lines = append(out.Lines, lines.GetLines()...) }, err
	})
	slices.SortStableFunc(out.Lines, func(a, b *pb.LogLine) int { return cmp.Compare(a.GetTimeNanos(), b.GetTimeNanos()) })
	out.Lines = out.Lines[max(0, len(out.Lines)-maxAnswerLines):]
	return out, nil
}

func logLine(l *logging.Line) *pb.LogLine {
	out := &pb.LogLine{TimeNanos: l.Time.UnixNano(), Level: logging.LevelName(l.Level), Message: validText(l.Message)}
	for _, f := range l.Fields {
		out.Fields = append(out.Fields, &pb.LogField{Name: validText(f.Name), Value: validText(f.Value)})
	}
	return out
}

// validText returns a text that a message of protocol buffers may have: names in requests need not
// be UTF-8.
func validText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// SetLogLevel implements [rpc.Inspection].
func (i *inspection) SetLogLevel(ctx context.Context, req *pb.SetLogLevelRequest) (*pb.SetLogLevelResponse, error) {
	if i.level == nil {
		return nil, status.Unimplementedf("the level of the log of %v is set by the program that runs it", i.server.def.Self())
	}
	before := i.level.Level()
	resp := &pb.SetLogLevelResponse{Before: logging.LevelName(before), Level: logging.LevelName(before)}
	if req.GetLevel() == "" {
		return resp, nil
	}
	level, err := logging.ParseLevel(req.GetLevel())
	if err != nil {
		return nil, status.InvalidArgumentf("%w", err)
	}
	i.level.Set(min(before, level, slog.LevelInfo)) // for the line about the change
	by := ""
	if p := trust.FromContext(ctx); p != nil {
		by = p.String()
	}
	i.server.log.Info("the level of the log changes", "from", resp.GetBefore(), "to", req.GetLevel(), "by", by)
	i.level.Set(level)
	resp.Level = logging.LevelName(level)
	return resp, nil
}

// CloseSessions implements [rpc.Inspection].
func (i *inspection) CloseSessions(ctx context.Context, req *pb.CloseSessionsRequest) (*pb.CloseSessionsResponse, error) {
	resp, err := i.server.task.Master.CloseSessions(ctx, req)
	if i.audit == nil {
		return resp, err
	}
	e := audit.Event{Event: audit.SessionClosed, Principal: trust.FromContext(ctx), Session: req.GetHandle(), Task: i.server.def.Self().String(), Code: status.CodeOf(err).String()}
	if err != nil {
		e.Reason = err.Error()
		return nil, i.audit.Require(e, err)
	}
	for _, s := range resp.GetClosed() {
		e.Session, e.Reason = s.GetHandle(), "CloseSessions"
		if failed := i.audit.Require(e, nil); failed != nil {
			err = failed
		}
	}
	return resp, err
}
