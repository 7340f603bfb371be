package weft

import (
	"log/slog"
	"maps"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/inspect/logging"
	"github.com/weft-ml/weft/internal/inspect/tracing"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// SessionOption configures a session.
type SessionOption interface {
	applySession(*settings) error
}

// TargetOption configures how a target is reached. It is an option of sessions and of the functions
// [ListDevices] and [Reset].
type TargetOption interface {
	SessionOption
	applyTarget(*settings) error
}

// sessionOption is an option of sessions only.
type sessionOption func(*settings) error

func (o sessionOption) applySession(s *settings) error { return o(s) }

// targetOption is an option of sessions and of calls without one.
type targetOption func(*settings) error

func (o targetOption) applySession(s *settings) error { return o(s) }
func (o targetOption) applyTarget(s *settings) error  { return o(s) }

// settings are what the options of a session or of a call add up to.
type settings struct {
	config *pb.ConfigProto
	log    *slog.Logger
	tls    *TLS            // nil for a connection without TLS
	tracer *tracing.Tracer // nil for none
}

func newSettings() *settings {
	return &settings{config: &pb.ConfigProto{}, log: slog.New(logging.AtLeast(slog.LevelWarn, slog.Default().Handler()))} //nolint:forbidigo // unless an option passes one in
}

// timeout returns the longest time that a call may take; 0 if only its context limits it.
func (s *settings) timeout() time.Duration {
	return time.Duration(s.config.OperationTimeoutInMs) * time.Millisecond
}

// configOption returns an option that changes the configuration.
func configOption(f func(*pb.ConfigProto)) sessionOption {
	return func(s *settings) error {
		f(s.config)
		return nil
	}
}

// WithDeviceFilters limits the session to the devices that match one of the given partial names,
// such as "/job:ps", and to those of the task that it is connected to. The session does not wait
// for tasks that match none of them.
func WithDeviceFilters(filters ...string) SessionOption {
	return configOption(func(c *pb.ConfigProto) { c.DeviceFilters = append(c.DeviceFilters, filters...) })
}

// WithSoftPlacement lets a node run on another device of the same task if the requested device does
// not exist or has no kernel for the node.
func WithSoftPlacement() SessionOption {
	return configOption(func(c *pb.ConfigProto) { c.AllowSoftPlacement = true })
}

// WithPlacementLog makes the master log the device of each node.
func WithPlacementLog() SessionOption {
	return configOption(func(c *pb.ConfigProto) { c.LogDevicePlacement = true })
}

// WithIsolation gives the session its own resources: it shares no variable with other sessions.
func WithIsolation() SessionOption {
	return configOption(func(c *pb.ConfigProto) { c.IsolateSessionState = true })
}

// WithTimeout limits the duration of every call of the session, in addition to the deadlines of the
// contexts. The limit is rounded down to milliseconds and is at least one. A call that takes longer
// fails with DeadlineExceeded.
func WithTimeout(d time.Duration) SessionOption {
	return configOption(func(c *pb.ConfigProto) { c.OperationTimeoutInMs = max(1, d.Milliseconds()) })
}

// WithConfig merges the fields of a serialized tensorflow.ConfigProto into the configuration of the
// session, for settings without an option. It is an error if config is not such a message.
func WithConfig(config []byte) SessionOption {
	return sessionOption(func(s *settings) error {
		if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(config, s.config); err != nil {
			return status.InvalidArgumentf("not a ConfigProto: %w", err)
		}
		return nil
	})
}

// WithCPUDevices sets the number of CPU devices of the target "local"; the default is one. The
// devices of a server are set when it is started.
func WithCPUDevices(n int) TargetOption {
	return targetOption(configOption(func(c *pb.ConfigProto) {
		c.DeviceCount = maps.Clone(c.DeviceCount)
		if c.DeviceCount == nil {
			c.DeviceCount = map[string]int32{}
		}
		c.DeviceCount["CPU"] = int32(min(n, 1<<20))
	}))
}

// WithNetwork uses a network connection even to a server in this process.
func WithNetwork() TargetOption {
	return targetOption(configOption(func(c *pb.ConfigProto) {
		if c.RpcOptions == nil {
			c.RpcOptions = &pb.RPCOptions{}
		}
		c.RpcOptions.UseRpcForInprocessMaster = true
	}))
}

// WithTracerProvider makes spans for OpenTelemetry of the calls to the server: children of the span
// in the context of a call, which the server learns in W3C Trace Context. A call without a span in
// its context has none.
func WithTracerProvider(p trace.TracerProvider) TargetOption {
	return targetOption(func(s *settings) error {
		s.tracer = tracing.New(p)
		return nil
	})
}

// WithLogger sets the logger for warnings, such as those about a target that is not up yet. Without
// it, warnings and errors go to [slog.Default].
func WithLogger(l *slog.Logger) TargetOption {
	return targetOption(func(s *settings) error {
		s.log = l
		return nil
	})
}

// RunOption configures one step, or all steps of a [Callable].
type RunOption func(*runSettings)

func (o RunOption) applyTrace(r *runSettings) { o(r) }

type runSettings struct {
	options *pb.RunOptions // nil unless an option needs it
	timeout time.Duration  // 0 for none
	traced  bool           // the metadata of the response is returned
}

func newRunSettings(opts []RunOption, timeout time.Duration) runSettings {
	if len(opts) == 0 { // settings do not escape to the heap
		return runSettings{timeout: timeout}
	}
	r := &runSettings{timeout: timeout}
	for _, opt := range opts {
		opt(r)
	}
	return *r
}

func (r *runSettings) proto() *pb.RunOptions {
	if r.options == nil {
		r.options = &pb.RunOptions{}
	}
	return r.options
}

// WithStepTimeout limits the duration of the step, instead of the timeout of the session. The limit
// is rounded down to milliseconds and is at least one.
func WithStepTimeout(d time.Duration) RunOption {
	return func(r *runSettings) {
		r.timeout = d
		r.proto().TimeoutInMs = max(1, d.Milliseconds())
	}
}
