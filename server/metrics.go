package server

import (
	"context"
	"time"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/inspect/metrics"
	"github.com/weft-ml/weft/internal/numeric/parallel"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/sys/tensormem"
	"github.com/weft-ml/weft/kernel"
)

// gpuState returns the state of a GPU device for its metrics.
func gpuState(d *kernel.Device) metrics.GPU {
	g := d.GPU.Stats()
	return metrics.GPU{
		Device: d.Name, InUse: g.InUse, Peak: g.Peak, Reserved: g.Reserved, Limit: g.Limit, Launches: g.Launches, KernelTime: g.KernelTime,
		ToDevice: metrics.Copies{Number: g.ToDevice, Bytes: g.ToDeviceBytes},
		ToHost:   metrics.Copies{Number: g.ToHost, Bytes: g.ToHostBytes},
		Peer:     metrics.Copies{Number: g.Peer, Bytes: g.PeerBytes},
	}
}

// maxQueues bounds the queues that have metrics of their own. Clients make any number.
const maxQueues = 1000

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
	for _, d := range s.task.Devices {
		if d.GPU != nil {
			st.GPUs = append(st.GPUs, gpuState(d))
			st.Detours = device.Detours()
		}
	}
	for r := range s.task.Worker.Resources() {
		st.Resources[r.GetKind()]++
		switch r.GetKind() {
		case "variable":
			st.VariableBytes += r.GetBytes()
		case "queue":
			if len(st.Queues) == maxQueues {
				continue
			}
			st.Queues = append(st.Queues, metrics.Queue{Container: r.GetContainer(), Name: r.GetName(), Elements: r.GetElements()})
		}
	}
	return st
}
