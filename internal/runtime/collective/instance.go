package collective

import (
	"context"
	"maps"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// instanceID identifies an operation of a group.
type instanceID struct {
	group, key int32
	step       int64
}

// instance is an operation of a group that this task leads.
type instance struct {
	Instance // as the first device has passed it
	// A broadcast waits for all devices, because any of them may be the source.
	seen   map[string]bool
	source int // rank, or -1 if it is unknown

	done chan struct{} // closed when the source is known or not needed, or the instance has failed
	err  error         // set before done is closed
}

func (i *instance) isDone() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// CompleteInstance compares the parameters of a device with those of the other members of a group
// that this task leads. It returns the rank of the source of a broadcast, or -1. For a broadcast it
// waits until all devices have called it, or ctx ends.
func (m *Manager) CompleteInstance(ctx context.Context, in *Instance) (source int, err error) {
	i, err := m.register(in)
	if err != nil {
		return 0, err
	}
	select {
	case <-i.done:
		return i.source, i.err
	case <-ctx.Done():
		return 0, status.FromContext(ctx, "waiting for the source of "+in.Name)
	}
}

func (m *Manager) register(in *Instance) (*instance, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups[in.Group]
	switch {
	case g == nil:
		return nil, status.FailedPreconditionf("group %d not found. This normally means the server has restarted", in.Group)
	case g.group == nil:
		return nil, status.FailedPreconditionf("group %d failed to resolve. This normally means the server has restarted", in.Group)
	}
	rank := g.group.rank(in.Device)
	if rank < 0 {
		return nil, status.FailedPreconditionf("Device %s is not a member of collective group %d", in.Device, in.Group)
	}
	id := instanceID{in.Group, in.Key, in.StepID}
	i := m.instances[id]
	if i == nil {
		m.dropFinishedLocked()
		i = &instance{Instance: *in, seen: map[string]bool{}, source: -1, done: make(chan struct{})}
		m.instances[id] = i
	}
	if err := compare(&i.Instance, in); err != nil {
		return nil, err
	}
	if i.isDone() {
		return i, nil
	}
	i.arrive(in, rank, g.size)
	if i.isDone() && i.err != nil {
		delete(m.instances, id) // the next attempt creates it again
	}
	return i, nil
}

// dropFinishedLocked removes the instances without waiting calls if there are too many instances.
func (m *Manager) dropFinishedLocked() {
	if len(m.instances) >= maxRecords {
		maps.DeleteFunc(m.instances, func(_ instanceID, i *instance) bool { return i.isDone() })
	}
}

// compare checks that the parameters of a device match another device's.
func compare(i, in *Instance) error {
	switch {
	case i.Kind != in.Kind || i.DType != in.DType:
		return status.Internalf("Collective instance %d expected type %d and data_type %d but got type %d and data_type %d",
			in.Key, i.Kind, i.DType, in.Kind, in.DType)
	case !i.Shape.Equal(in.Shape):
		return status.InvalidArgumentf("Shape mismatch in the collective instance %d. Op at device %s expected shape %v but "+
			"another member in the group expected shape %v. This is likely due to different input shapes at different members of the "+
			"collective op.", in.Key, in.Device, in.Shape, i.Shape)
	}
	return nil
}

// arrive records the call of a device. The last device, or the first with an error, ends the wait.
func (i *instance) arrive(in *Instance, rank, size int) {
	if i.Kind != kernel.Broadcast {
		close(i.done)
		return
	}
	if !i.seen[in.Device] && in.Source {
		if i.source >= 0 {
			i.err = status.Internalf("Instance %d already has source %d, received second claim from %d", in.Key, i.source, rank)
			close(i.done)
			return
		}
		i.source = rank
	}
	i.seen[in.Device] = true
	if len(i.seen) < size {
		return
	}
	if i.source < 0 {
		i.err = status.Internalf("Instance %d found no source for broadcast.  This could mean that there were group_size=%d "+
			"BcastRecvs but no BcastSend.", in.Key, size)
	}
	close(i.done)
}

// agreement is an operation that a leader has accepted.
type agreement struct {
	Instance
	source int
}

// instance passes the parameters of a device to the leader and returns the rank of the source of a
// broadcast. An instance that the leader has accepted is not sent again.
func (m *Manager) instance(ctx context.Context, s *Step, in *Instance) (source int, err error) {
	if s.leads() {
		return m.CompleteInstance(ctx, in)
	}
	group, id := groupID{s.Leader, in.Group}, instanceID{in.Group, in.Key, in.StepID}
	m.mu.Lock()
	a, ok := m.agreed[group][id]
	m.mu.Unlock()
	if ok {
		return a.source, compare(&a.Instance, in)
	}
	if source, err = s.Peers.CompleteInstance(ctx, s.Leader, in); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if all := m.agreed[group]; all == nil || len(all) >= maxRecords {
		m.agreed[group] = map[instanceID]agreement{}
	}
	m.agreed[group][id] = agreement{*in, source}
	return source, nil
}
