package rpc

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// Methods of gRPC's health service: a single check, and a stream of changes.
const (
	methodHealth      = "/grpc.health.v1.Health/Check"
	methodHealthWatch = "/grpc.health.v1.Health/Watch"
)

// health is a serving status of gRPC's health service.
type health uint64

const (
	healthServing    health = 1
	healthNotServing health = 2
	healthUnknown    health = 3 // unknown service
)

// response returns a HealthCheckResponse.
func (h health) response() []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(h))
}

// Health serves gRPC's health service. All services of a server have the same status.
type Health struct {
	services []string

	mu      sync.Mutex
	state   health        // status of all services; guarded by mu
	closed  bool          // guarded by mu
	changed chan struct{} // closed when state or closed changes; guarded by mu
}

// RegisterHealth registers the health service with a server. Without names, the services are those
// of a task.
func RegisterHealth(s *Server, services ...string) *Health {
	if len(services) == 0 {
		services = []string{MasterService, WorkerService, EagerService}
	}
	h := &Health{services: services, state: healthNotServing, changed: make(chan struct{})}
	s.Handle(methodHealth, grpch2.Method{NewBody: s.limiter.newBody(nil), Serve: h.check, Audience: grpch2.Clients})
	s.Handle(methodHealthWatch, grpch2.Method{NewBody: s.limiter.newBody(nil), Serve: h.watch, Audience: grpch2.Clients})
	return h
}

// SetServing sets the status of all services.
func (h *Health) SetServing(serving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state = healthNotServing; serving {
		h.state = healthServing
	}
	h.changeLocked()
}

// Close ends the streams of changes.
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

func (h *Health) current() (state health, closed bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state, h.closed, h.changed
}

func (h *Health) check(c *grpch2.Call) {
	service, ok := requestedService(c)
	switch {
	case !ok:
		_ = c.Reply(failed(requestError(errMalformed)))
	case !h.has(service):
		_ = c.Reply(failed(status.NotFoundf("unknown service %s", service)))
	default:
		state, _, _ := h.current()
		_ = c.Reply(grpch2.Outcome{Data: [][]byte{state.response()}})
	}
}

// watch sends the status of a service, and every change, until the caller ends the call. A caller
// may watch a service that does not exist yet.
func (h *Health) watch(c *grpch2.Call) {
	service, ok := requestedService(c)
	if !ok {
		_ = c.Reply(failed(requestError(errMalformed)))
		return
	}
	var sent health
	for {
		state, closed, changed := h.current()
		if !h.has(service) {
			state = healthUnknown
		}
		if state != sent && c.Send(state.response()) != nil {
			_ = c.Reply(failed(status.Cancelledf("the caller has gone")))
			return
		}
		sent = state
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

// has reports whether a name is that of a service, or "" for all of them.
func (h *Health) has(service string) bool {
	return service == "" || slices.Contains(h.services, service)
}

// maxHealthRequest bounds a HealthCheckRequest in bytes. Everybody may call the service. gRPC's
// clients send 1 MiB to test a server.
const maxHealthRequest = 4 << 20

// requestedService decodes the request of a call, whose memory it gives back.
func requestedService(c *grpch2.Call) (service string, ok bool) {
	body := c.Request().(*receiveBuffer) //nolint:forcetypeassert // see newBody
	defer body.Discard()
	const copies = 2 // of the request, one of them of its name
	if body.received > maxHealthRequest || !membudget.Take(copies*int64(body.received)) {
		return "", false
	}
	return healthRequest(slices.Concat(body.data...))
}

// healthRequest decodes a HealthCheckRequest, whose first field is the name of a service.
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
