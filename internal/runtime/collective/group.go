package collective

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

// maxRecords bounds the instances that a task stores. Peers choose their keys too. Groups stay, as
// in TensorFlow, so only memory bounds their number: with a smaller bound, one client could use up
// the groups of all.
const maxRecords = 1 << 16

const (
	// maxText bounds a name that a peer chooses and a record keeps, in bytes. Those of TensorFlow
	// are below 1 KiB.
	maxText = 4 << 10
	// maxMembers bounds the members of a group. Each of them gets the names of all, and a group
	// is sorted with the lock of all groups held.
	maxMembers = 1 << 16
	// maxNamed bounds the names in the error of a group that is not complete.
	maxNamed = 32
	// recordMemory is about the memory of a record without its texts, in bytes.
	recordMemory = 512
)

// checkText checks the length of a text that is kept.
func checkText(what, text string) error {
	if len(text) > maxText {
		return status.InvalidArgumentf("The name of a %s has %d bytes, more than %d: %.64s...", what, len(text), maxText, text)
	}
	return nil
}

// noMemory returns the error for a record for which there is no memory.
func noMemory(what, name string) error {
	return status.ResourceExhaustedf("There is not enough memory for the %s %.64s (--memory-limit).", what, name)
}

// Manager holds the groups of one task: those that it leads, and those that it knows from their
// leaders. It is safe for concurrent use.
type Manager struct {
	mu        sync.Mutex
	groups    map[int32]*pendingGroup  // groups that this task leads, by key; guarded by mu
	instances map[instanceID]*instance // of groups that this task leads; guarded by mu
	remote    map[groupID]*Group       // complete groups of other leaders; guarded by mu
	// instances that other leaders have accepted; guarded by mu
	agreed map[groupID]map[instanceID]agreement
}

// groupID identifies a group for a member.
type groupID struct {
	leader string
	key    int32
}

// NewManager returns a manager without groups.
func NewManager() *Manager {
	return &Manager{
		groups: map[int32]*pendingGroup{}, instances: map[instanceID]*instance{},
		remote: map[groupID]*Group{}, agreed: map[groupID]map[instanceID]agreement{},
	}
}

// pendingGroup is a group that this task leads, until and after it is complete. Calls that join it
// wait until all members have joined.
type pendingGroup struct {
	size    int
	kind    string            // type of the devices
	members map[string]joined // by name
	waiting map[string]int    // number of waiting calls, by name

	done  chan struct{} // closed when the group is complete or has failed
	group *Group        // set before done is closed, unless it has failed
	err   error         // reason of its failure
}

type joined struct {
	Device
	userRank int32
}

// CompleteGroup joins a device to a group that this task leads. It waits until all members have
// joined, the group fails, or ctx ends.
func (m *Manager) CompleteGroup(ctx context.Context, in *Member) (*Group, error) {
	g, err := m.join(in)
	if err != nil {
		return nil, err
	}
	select {
	case <-g.done:
	case <-ctx.Done():
		m.withdraw(in, g)
		select {
		case <-g.done: // ended meanwhile
		default:
			return nil, m.missing(g, in.Group.Key)
		}
	}
	return g.group, g.err
}

// join adds a device to a group. If a member disagrees with the others about the group, the group
// fails for all waiting calls: they could not succeed.
func (m *Manager) join(in *Member) (*pendingGroup, error) {
	key := in.Group.Key
	if err := checkText("device of a collective group", in.Device.Name); err != nil {
		return nil, err
	}
	if err := checkText("type of a device", in.Device.Type); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups[key]
	if g == nil {
		if in.Group.Size < 1 {
			return nil, status.InvalidArgumentf("group_size must be positive integer but got %d", in.Group.Size)
		}
		if in.Group.Size > maxMembers {
			return nil, status.ResourceExhaustedf("group_size is %d, at most %d devices may be in a group (group_key=%d)", in.Group.Size, maxMembers, key)
		}
		g = &pendingGroup{
			size: int(in.Group.Size), kind: in.Device.Type, members: map[string]joined{}, waiting: map[string]int{}, done: make(chan struct{}),
		}
		defer m.dropEmptyLocked(key, g)
		m.groups[key] = g
	}
	if _, known := g.members[in.Device.Name]; !known && !membudget.TakeRecord(memberMemory(&in.Device)) {
		return nil, noMemory("member of a collective group", in.Device.Name)
	}
	if err := g.admit(in); err != nil {
		if g.group == nil || status.CodeOf(err) == status.FailedPrecondition {
			m.failLocked(key, g, err)
		}
		return nil, err
	}
	g.waiting[in.Device.Name]++
	if g.group == nil && len(g.members) == g.size {
		group, err := g.complete(key)
		if err != nil {
			m.failLocked(key, g, err)
			return nil, err
		}
		g.group = group
		close(g.done)
	}
	return g, nil
}

// dropEmptyLocked removes a group without members, because its first one could not join.
func (m *Manager) dropEmptyLocked(key int32, g *pendingGroup) {
	if len(g.members) == 0 && m.groups[key] == g {
		delete(m.groups, key)
	}
}

// memberMemory returns about the memory of a member of a group, in bytes.
func memberMemory(d *Device) int64 { return int64(recordMemory + len(d.Name) + len(d.Type)) }

// admit adds a device to the members, or returns why it cannot join.
func (g *pendingGroup) admit(in *Member) error {
	d, key := in.Device, in.Group.Key
	old, known := g.members[d.Name]
	switch {
	case d.Type != g.kind:
		return status.Internalf("Device %s is joining a group with incompatible device type %s (group_key=%d)", d.Name, g.kind, key)
	case int(in.Group.Size) != g.size:
		return status.Internalf("Device %s is joining a group with size %d, but that group has size %d (group_key=%d)",
			d.Name, in.Group.Size, g.size, key)
	case known && old.Incarnation != d.Incarnation:
		return status.FailedPreconditionf("Device %s current incarnation doesn't match with one in the group. This usually means "+
			"this worker has restarted but the collective leader hasn't, or this worker connects to a wrong cluster.", d.Name)
	case known:
		return nil
	case len(g.members) == g.size:
		return status.Internalf("Device %s is joining a group that is already full (group_key=%d)", d.Name, key)
	case in.Group.Rank < -1 || int(in.Group.Rank) >= g.size:
		return status.InvalidArgumentf("User Provided rank is invalid. It should be between [0, group_size)")
	}
	g.members[d.Name] = joined{d, in.Group.Rank}
	return nil
}

// complete returns the group of all members.
func (g *pendingGroup) complete(key int32) (*Group, error) {
	out := &Group{Key: key, Type: g.kind}
	for _, m := range g.members {
		out.Members = append(out.Members, m.Device)
	}
	sortDevices(out.Members)
	taken := map[int32]bool{}
	var userRanks []int
	var text []string
	for i := range out.Members {
		userRank := g.members[out.Members[i].Name].userRank
		taken[userRank] = true
		userRanks = append(userRanks, int(userRank))
		text = append(text, fmt.Sprint(userRank))
	}
	switch {
	case taken[-1] && len(taken) > 1:
		return nil, status.InvalidArgumentf("Only part of the group members have user given rank specified. Received ranks: %s",
			strings.Join(text, ","))
	case !taken[-1] && len(taken) < g.size:
		return nil, status.InvalidArgumentf("Duplicate ranks specified for group members. Received ranks: %s", strings.Join(text, ","))
	case !taken[-1]:
		out.userRanks = userRanks
	}
	return out, nil
}

// failLocked fails a group for all waiting calls and removes it, so that it can be formed again.
func (m *Manager) failLocked(key int32, g *pendingGroup, err error) {
	if m.groups[key] == g {
		delete(m.groups, key)
	}
	for id := range m.instances {
		if id.group == key {
			delete(m.instances, id)
		}
	}
	if g.group == nil {
		g.err = err
		close(g.done)
	}
}

// withdraw removes a device whose call no longer waits.
func (m *Manager) withdraw(in *Member, g *pendingGroup) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := in.Device.Name
	if g.waiting[name]--; g.waiting[name] > 0 || g.group != nil {
		return
	}
	delete(g.members, name)
	if len(g.members) == 0 && m.groups[in.Group.Key] == g {
		delete(m.groups, in.Group.Key)
	}
}

// missing returns the error of a cancelled wait for a group. It names some of many members: all of
// them may give up at the same time.
func (m *Manager) missing(g *pendingGroup, key int32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for name := range g.members {
		if len(names) == maxNamed {
			break
		}
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) < len(g.members) {
		names = append(names, "...")
	}
	return status.Cancelledf("Cancelled while waiting for collective group %d: besides the device itself, %d of %d devices have joined: %s",
		key, len(g.members), g.size-1, strings.Join(names, ", "))
}

// group returns the group of a device. If the group is unknown, it joins it at the leader.
func (m *Manager) group(ctx context.Context, s *Step, in *Member) (*Group, error) {
	if s.leads() {
		return m.CompleteGroup(ctx, in)
	}
	id := groupID{s.Leader, in.Group.Key}
	g := m.lookup(id)
	if g == nil {
		if s.Peers == nil {
			return nil, status.Internalf("No worker known as %s, the leader of collective groups", s.Leader)
		}
		var err error
		if g, err = s.Peers.CompleteGroup(ctx, s.Leader, in); err != nil {
			return nil, err
		}
		sortDevices(g.Members)
		if err := m.remember(id, g); err != nil {
			return nil, err
		}
	}
	at := g.rank(in.Device.Name)
	switch {
	case len(g.Members) != int(in.Group.Size):
		return nil, status.Internalf("Device %s is joining a group with size %d, but that group has size %d (group_key=%d)",
			in.Device.Name, in.Group.Size, len(g.Members), in.Group.Key)
	case at < 0:
		return nil, status.Internalf("Device %s is joining a group that is already full (group_key=%d)", in.Device.Name, in.Group.Key)
	case g.Members[at].Incarnation != in.Device.Incarnation:
		return nil, status.FailedPreconditionf("Device %s current incarnation doesn't match with one in the group. This usually "+
			"means this worker has restarted but the collective leader hasn't, or this worker connects to a wrong cluster.", in.Device.Name)
	}
	return g, nil
}

func (m *Manager) lookup(id groupID) *Group {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remote[id]
}

func (m *Manager) remember(id groupID, g *Group) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !membudget.TakeRecord(g.memory()) {
		return noMemory("collective group of", id.leader)
	}
	m.remote[id] = g
	return nil
}

// joinedGroup returns a group that the device must have joined before.
func (m *Manager) joinedGroup(s *Step, want kernel.CollectiveGroup) (*Group, error) {
	g := m.lookup(groupID{s.Leader, want.Key})
	if s.leads() {
		m.mu.Lock()
		if led := m.groups[want.Key]; led != nil {
			g = led.group
		}
		m.mu.Unlock()
	}
	if g == nil {
		return nil, status.InvalidArgumentf("Group %d is not initialized. Please call group initialization op first before "+
			"invoking collective op.", want.Key)
	}
	return g, nil
}

// forget removes a group of another leader, because a member or the leader may have been restarted.
func (m *Manager) forget(s *Step, key int32) {
	if s.leads() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := groupID{s.Leader, key}
	delete(m.remote, id)
	delete(m.agreed, id)
}
