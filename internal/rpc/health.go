package rpc

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/h2"
	"github.com/weft-ml/weft/status"
)

// methodHealth is the method of gRPC's health service by which probes ask once. Watch, by which they ask for ever, is
// unknown here, which they take for an answer, too.
const methodHealth = "/grpc.health.v1.Health/Check"

// States of gRPC's health service.
const (
	healthServing    = 1
	healthNotServing = 2
)

// Health answers probes of gRPC's health service: services serve between two points in time.
type Health struct {
	mu      sync.Mutex
	serving bool // guarded by mu
}

// RegisterHealth makes a server answer probes.
func RegisterHealth(s *Server) *Health {
	h := &Health{}
	s.Handle(methodHealth, h2.Method{Room: rooms(nil), Serve: h.check})
	return h
}

// SetServing says whether the services serve.
func (h *Health) SetServing(serving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serving = serving
}

func (h *Health) check(c *h2.Call) {
	service, ok := healthRequest(slices.Concat(c.Request().(*arrival).data...))
	switch {
	case !ok:
		_ = c.Reply(failed(requestError(errMalformed)))
	case service != "" && service != MasterService && service != WorkerService:
		_ = c.Reply(failed(status.NotFoundf("unknown service %s", service)))
	default:
		_ = c.Reply(h2.Outcome{Data: [][]byte{h.response()}})
	}
}

func (h *Health) response() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := uint64(healthNotServing)
	if h.serving {
		state = healthServing
	}
	return protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), state)
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
