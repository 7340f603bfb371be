package weft

import (
	"log/slog"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

// Option says how a session is to be.
type Option func(*settings) error

type settings struct {
	config       *pb.ConfigProto
	log          *slog.Logger
	clearDevices bool // of a model that is loaded
}

func newSettings(opts []Option) (*settings, error) {
	s := &settings{config: &pb.ConfigProto{}, log: slog.Default()} //nolint:forbidigo // nobody has passed one in
	for _, opt := range opts {
		if err := opt(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// timeout returns how long a call may take, 0 for as long as its context lasts.
func (s *settings) timeout() time.Duration {
	return time.Duration(s.config.OperationTimeoutInMs) * time.Millisecond
}

func set(f func(*pb.ConfigProto)) Option {
	return func(s *settings) error {
		f(s.config)
		return nil
	}
}

// WithDeviceFilters limits the session to the devices that match one of the given partial names,
// such as "/job:ps", and those of the task that it is connected to. It does not wait for the other
// tasks of the cluster to be up.
func WithDeviceFilters(filters ...string) Option {
	return set(func(c *pb.ConfigProto) { c.DeviceFilters = append(c.DeviceFilters, filters...) })
}

// WithSoftPlacement lets a node run on another device of the same task than the one that it asks
// for, where that one does not exist or has no kernel for it.
func WithSoftPlacement() Option {
	return set(func(c *pb.ConfigProto) { c.AllowSoftPlacement = true })
}

// WithClearDevices lets the nodes of a model that [LoadSavedModel] or [FreezeSavedModel] loads run
// on any device of the target, whatever they ask for: a model of a cluster can run in one process.
// Other sessions take no notice of it.
func WithClearDevices() Option {
	return func(s *settings) error {
		s.clearDevices = true
		return nil
	}
}

// WithPlacementLog makes the master write down on which device it places each node.
func WithPlacementLog() Option {
	return set(func(c *pb.ConfigProto) { c.LogDevicePlacement = true })
}

// WithIsolation gives the session resources of its own: it shares no variable with other sessions.
func WithIsolation() Option {
	return set(func(c *pb.ConfigProto) { c.IsolateSessionState = true })
}

// WithTimeout bounds every call of the session, on top of the contexts that calls are given.
func WithTimeout(d time.Duration) Option {
	return set(func(c *pb.ConfigProto) { c.OperationTimeoutInMs = max(1, d.Milliseconds()) })
}

// WithCPUDevices gives the task of target "local" a number of CPU devices. Servers have what they
// were started with.
func WithCPUDevices(n int) Option {
	return set(func(c *pb.ConfigProto) {
		c.DeviceCount = maps.Clone(c.DeviceCount)
		if c.DeviceCount == nil {
			c.DeviceCount = map[string]int32{}
		}
		c.DeviceCount["CPU"] = int32(min(n, 1<<20))
	})
}

// WithNetwork makes the session use a connection even to a server in this process.
func WithNetwork() Option {
	return set(func(c *pb.ConfigProto) {
		if c.RpcOptions == nil {
			c.RpcOptions = &pb.RPCOptions{}
		}
		c.RpcOptions.UseRpcForInprocessMaster = true
	})
}

// WithConfig adds the fields of a serialized tensorflow.ConfigProto, for all that has no option of
// its own.
func WithConfig(config []byte) Option {
	return func(s *settings) error {
		if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(config, s.config); err != nil {
			return status.InvalidArgumentf("not a ConfigProto: %w", err)
		}
		return nil
	}
}

// WithLogger makes the session say to l what it waits for, in the place of [slog.Default].
func WithLogger(l *slog.Logger) Option {
	return func(s *settings) error {
		s.log = l
		return nil
	}
}

// RunOption says how one step is to be run.
type RunOption func(*runSettings)

type runSettings struct {
	options  *pb.RunOptions // nil unless an option needs it
	metadata *Metadata      // may be nil
	timeout  time.Duration  // 0 for none
}

func newRunSettings(opts []RunOption, timeout time.Duration) runSettings {
	if len(opts) == 0 { // and nothing need be allocated for options
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

// WithTrace records what ran where and when, and stores it in m.
func WithTrace(m *Metadata) RunOption {
	return func(r *runSettings) {
		r.metadata = m
		r.proto().TraceLevel = pb.RunOptions_FULL_TRACE
	}
}

// WithPartitionGraphs stores in m the graphs that ran on each device.
func WithPartitionGraphs(m *Metadata) RunOption {
	return func(r *runSettings) {
		r.metadata = m
		r.proto().OutputPartitionGraphs = true
	}
}

// WithStepTimeout bounds the step, in the place of the session's timeout.
func WithStepTimeout(d time.Duration) RunOption {
	return func(r *runSettings) {
		r.timeout = d
		r.proto().TimeoutInMs = max(1, d.Milliseconds())
	}
}
