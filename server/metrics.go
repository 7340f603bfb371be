package server

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/inspect/metrics"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/tensormem"
)

// metricState returns the state of the task for its metrics.
func (s *Server) metricState() *metrics.State {
	rendezvous := s.task.Worker.Rendezvous()
	ready := s.readiness(context.Background(), false)
	st := &metrics.State{
		Task: s.def.Self().String(), Uptime: time.Since(s.inspection.started), Ready: ready.Ready, CertificateEnd: s.CertificateExpiry(), Insecure: s.exposed,
		Connections: len(s.rpc.Conns()), Limited: s.Limited(), Waits: len(ready.Waits), Sessions: s.task.Master.Sessions(),
		WorkerSessions: s.task.Worker.Sessions(), Graphs: s.task.Worker.Graphs(), WorkerSteps: s.task.Worker.NumSteps(), Computing: parallel.Computing(),
		RendezvousValues: rendezvous.Values, RendezvousBytes: rendezvous.Bytes, Consumers: rendezvous.Consumers,
		LentBytes: s.lender.LeasedBytes(), LentTotal: uint64(s.lender.LentBytes()), BorrowedTotal: s.borrower.ReadBytes(), //nolint:gosec // counts
		PoolBytes: tensormem.FreeBytes(), MemoryLimit: membudget.Limit(), Resources: map[string]int{},
	}
	for _, r := range s.task.Worker.Resources() {
		st.Resources[r.GetKind()]++
		switch r.GetKind() {
		case "variable":
			st.VariableBytes += r.GetBytes()
		case "queue":
			st.Queues = append(st.Queues, metrics.Queue{Container: r.GetContainer(), Name: r.GetName(), Elements: r.GetElements()})
		}
	}
	return st
}
