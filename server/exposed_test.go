package server

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/role/peer"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// resettable is a master, a worker and an inspection that count calls.
type resettable struct {
	rpc.Master
	rpc.Worker
	rpc.Inspection
	calls int
}

func (r *resettable) Reset(context.Context, *pb.ResetRequest) (*pb.ResetResponse, error) {
	r.calls++
	return &pb.ResetResponse{}, nil
}

func (r *resettable) CleanupAll(context.Context, *pb.CleanupAllRequest) (*pb.CleanupAllResponse, error) {
	r.calls++
	return &pb.CleanupAllResponse{}, nil
}

func (r *resettable) SetLogLevel(context.Context, *pb.SetLogLevelRequest) (*pb.SetLogLevelResponse, error) {
	r.calls++
	return &pb.SetLogLevelResponse{}, nil
}

func (r *resettable) CloseSessions(context.Context, *pb.CloseSessionsRequest) (*pb.CloseSessionsResponse, error) {
	r.calls++
	return &pb.CloseSessionsResponse{}, nil
}

// Without certificates, only tasks and processes of the machine may drop variables and queues.
func TestResetByAddress(t *testing.T) {
	tasks := newTaskAddresses(cluster.Spec{"ps": cluster.Dense("192.0.2.7:2222")})
	for _, tt := range []struct {
		address string // "" for a call within the process
		allowed bool
	}{{"192.0.2.7", true}, {"127.0.0.1", true}, {"::1", true}, {"", true}, {"192.0.2.8", false}, {"2001:db8::1", false}} {
		ctx := t.Context()
		if tt.address != "" {
			ctx = peer.WithAddress(ctx, netip.MustParseAddr(tt.address))
		}
		r := &resettable{}
		_, err := exposedMaster{r, tasks}.Reset(ctx, &pb.ResetRequest{})
		_, err2 := exposedWorker{r, tasks}.CleanupAll(ctx, &pb.CleanupAllRequest{})
		_, err3 := exposedInspection{r, tasks}.SetLogLevel(ctx, &pb.SetLogLevelRequest{})
		_, err4 := exposedInspection{r, tasks}.CloseSessions(ctx, &pb.CloseSessionsRequest{})
		if tt.allowed {
			if err := errors.Join(err, err2, err3, err4); err != nil || r.calls != 4 {
				t.Errorf("%q: %d calls, %v", tt.address, r.calls, err)
			}
			continue
		}
		wantError(t, err3, status.PermissionDenied, tt.address, "SetLogLevel", "--insecure")
		wantError(t, err4, status.PermissionDenied, tt.address, "CloseSessions", "--insecure")
		wantError(t, err, status.PermissionDenied, tt.address, "Reset", "--insecure")
		wantError(t, err2, status.PermissionDenied, tt.address, "CleanupAll", "--insecure")
		if r.calls != 0 {
			t.Errorf("%q: %d calls", tt.address, r.calls)
		}
	}
}

// A task that other machines reach without certificates has files below its roots only, and says
// that it is insecure.
func TestFilesWithoutCertificates(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	def := cluster.ServerDef{Cluster: cluster.Spec{"ps": cluster.Dense("0.0.0.0:0")}, Job: "ps", CPUDevices: 1}
	for _, tt := range []struct {
		opts []Option
		want status.Code
	}{{nil, status.PermissionDenied}, {[]Option{WithFileRoot("data", dir, true)}, status.OK}} {
		s, err := New(def, append(tt.opts, Insecure())...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.files.For("ReadFile", fileio.Reading).Read(path)
		if status.CodeOf(err) != tt.want {
			t.Errorf("%d roots: %v, want %v", len(tt.opts), err, tt.want)
		}
		if !s.metricState().Insecure {
			t.Error("the task does not say that it is insecure")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
