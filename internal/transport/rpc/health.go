package rpc

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// The methods of gRPC's health service: probes ask once, or to be told of every change.
const (
	methodHealth      = "/grpc.health.v1.Health/Check"
	methodHealthWatch = "/grpc.health.v1.Health/Watch"
)

// health is a state of gRPC's health service.
type health uint64

const (
	healthServing    health = 1
	healthNotServing health = 2
	healthUnknown    health = 3 // there is no such service
)

// response returns a HealthCheckResponse.
func (h health) response() []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(h))
}

// Health answers probes of gRPC's health service: services serve between two points in time.
type Health struct {
	mu      sync.Mutex
	state   health        // guarded by mu; of all services
	closed  bool          // guarded by mu
	changed chan struct{} // guarded by mu; closed when one of these changes
}

// RegisterHealth makes a server answer probes.
func RegisterHealth(s *Server) *Health {
	h := &Health{state: healthNotServing, changed: make(chan struct{})}
	s.Handle(methodHealth, grpch2.Method{NewBody: s.limiter.rooms(nil), Serve: h.check})
	s.Handle(methodHealthWatch, grpch2.Method{NewBody: s.limiter.rooms(nil), Serve: h.watch})
	return h
}

// SetServing says whether the services serve.
func (h *Health) SetServing(serving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state = healthNotServing; serving {
		h.state = healthServing
	}
	h.changeLocked()
}

// Close lets nobody wait for changes any more.
func (h *Health) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.changeLocked()
}

func (h *Health) changeLocked() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *Health) look() (state health, closed bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state, h.closed, h.changed
}

func (h *Health) check(c *grpch2.Call) {
	service, ok := healthRequest(slices.Concat(c.Request().(*arrival).data...))
	switch {
	case !ok:
		_ = c.Reply(failed(requestError(errMalformed)))
	case !hasHealth(service):
		_ = c.Reply(failed(status.NotFoundf("unknown service %s", service)))
	default:
		state, _, _ := h.look()
		_ = c.Reply(grpch2.Outcome{Data: [][]byte{state.response()}})
	}
}

// watch tells of the state of a service, and of each that follows, until the caller has heard
// enough. Who asks about a service that is not there may hope that it will be.
func (h *Health) watch(c *grpch2.Call) {
	service, ok := healthRequest(slices.Concat(c.Request().(*arrival).data...))
	if !ok {
		_ = c.Reply(failed(requestError(errMalformed)))
		return
	}
	var told health
	for {
		state, closed, changed := h.look()
		if !hasHealth(service) {
			state = healthUnknown
		}
		if state != told && c.Send(state.response()) != nil {
			_ = c.Reply(failed(status.Cancelledf("nobody watches")))
			return
		}
		told = state
		if closed {
			_ = c.Reply(failed(status.Unavailablef("the server is shutting down")))
			return
		}
		select {
		case <-changed:
		case <-c.Context().Done():
			_ = c.Reply(failed(status.FromContext(c.Context(), "watching a service")))
			return
		}
	}
}

// hasHealth reports whether a name is that of a service, or of all of them.
func hasHealth(service string) bool {
	return service == "" || service == MasterService || service == WorkerService
}

// healthRequest reads a HealthCheckRequest, of which the first field is the name of a service.
func healthRequest(b []byte) (service string, ok bool) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return "", false
		}
		b = b[n:]
		if number == 1 && kind == protowire.BytesType {
			v, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return "", false
			}
			service, b = string(v), b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return "", false
		}
		b = b[n:]
	}
	return service, true
}
