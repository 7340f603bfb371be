package collective

import (
	"context"
	"maps"

	"github.com/weft-ml/weft/internal/sys/membudget"
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
	// numbers of calls that wait, by device. A broadcast waits for all devices, because any of them
	// may be the source. A device whose calls have all been withdrawn is not in the map.
	callers map[string]int
	source  int // rank, or -1 if it is unknown

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
	i, rank, err := m.register(in)
	if err != nil {
		return 0, err
	}
	select {
	case <-i.done:
		return i.source, i.err
	case <-ctx.Done():
		m.withdrawCall(i, in, rank)
		return 0, status.FromContext(ctx, "waiting for the source of "+in.Name)
	}
}

// withdrawCall ends a call of a device that no longer waits. An instance without calls is dropped:
// nothing else would end it.
func (m *Manager) withdrawCall(i *instance, in *Instance, rank int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i.isDone() {
		return // it stays for the devices that call later
	}
	if i.callers[in.Device]--; i.callers[in.Device] > 0 {
		return
	}
	delete(i.callers, in.Device)
	if i.source == rank {
		i.source = -1
	}
	id := instanceID{in.Group, in.Key, in.StepID}
	if len(i.callers) == 0 && m.instances[id] == i {
		delete(m.instances, id)
	}
}

// register records a call of a device, whose rank it returns.
func (m *Manager) register(in *Instance) (i *instance, rank int, err error) {
	if err := checkText("collective operation", in.Name); err != nil {
		return nil, 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups[in.Group]
	switch {
	case g == nil:
		return nil, 0, status.FailedPreconditionf("group %d not found. This normally means the server has restarted", in.Group)
	case g.group == nil:
		return nil, 0, status.FailedPreconditionf("group %d failed to resolve. This normally means the server has restarted", in.Group)
	}
	rank = g.group.rank(in.Device)
	if rank < 0 {
		return nil, 0, status.FailedPreconditionf("Device %s is not a member of collective group %d", in.Device, in.Group)
	}
	id := instanceID{in.Group, in.Key, in.StepID}
	if i = m.instances[id]; i == nil {
		if err := m.makeRoomLocked(in); err != nil {
			return nil, 0, err
		}
		i = &instance{Instance: *in, callers: map[string]int{}, source: -1, done: make(chan struct{})}
		m.instances[id] = i
	}
	if err := compare(&i.Instance, in); err != nil {
		return nil, 0, err
	}
	if i.isDone() {
		return i, rank, nil
	}
	i.arrive(in, rank, g.size)
	if i.isDone() && i.err != nil {
		delete(m.instances, id) // the next attempt creates it again
	}
	return i, rank, nil
}

// memory returns about the memory of the record of an instance, in bytes.
func (in *Instance) memory() int64 {
	return int64(recordMemory + len(in.Name) + len(in.Device) + 8*len(in.Shape))
}

// makeRoomLocked asks for the memory of a new instance. If there are too many instances, or there
// is no memory, it first removes those that have finished.
func (m *Manager) makeRoomLocked(in *Instance) error {
	size := in.memory()
	full := len(m.instances) >= maxRecords
	if !full && membudget.TakeRecord(size) {
		return nil
	}
	maps.DeleteFunc(m.instances, func(_ instanceID, i *instance) bool { return i.isDone() })
	switch {
	case len(m.instances) >= maxRecords:
		return status.ResourceExhaustedf("%d collective operations wait for their members", maxRecords)
	case !membudget.TakeRecord(size):
		return noMemory("collective operation", in.Name)
	}
	return nil
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
	if i.callers[in.Device] == 0 && in.Source {
		if i.source >= 0 {
			i.err = status.Internalf("Instance %d already has source %d, received second claim from %d", in.Key, i.source, rank)
			close(i.done)
			return
		}
		i.source = rank
	}
	i.callers[in.Device]++
	if len(i.callers) < size {
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
	if membudget.TakeRecord(in.memory()) { // else the leader is asked again
		m.agreed[group][id] = agreement{*in, source}
	}
	return source, nil
}
