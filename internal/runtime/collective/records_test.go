package collective

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
)

const testDevice = "/job:worker/replica:0/task:0/device:CPU:"

// ledGroup returns a manager that leads group 1 of n devices.
func ledGroup(t *testing.T, n int) *Manager {
	t.Helper()
	m := NewManager()
	done := make(chan error, n)
	for i := range n {
		go func() {
			_, err := m.CompleteGroup(t.Context(), groupMember(1, n, i))
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func groupMember(key int32, size, i int) *Member {
	return &Member{
		Device: Device{Name: testDevice + string(rune('0'+i)), Type: "CPU"},
		Group:  kernel.CollectiveGroup{Key: key, Size: int32(size), Rank: -1},
	}
}

func broadcast(key int32, i int, source bool) *Instance {
	return &Instance{
		Group: 1, Size: 2, Key: key, Name: "b", Kind: kernel.Broadcast, Device: testDevice + string(rune('0'+i)), Source: source,
	}
}

// A broadcast whose callers have given up leaves nothing, and the next attempt is independent of
// it.
func TestWithdrawnBroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := ledGroup(t, 2)
		for _, source := range []bool{true, false} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := m.CompleteInstance(ctx, broadcast(1, 0, source))
			cancel()
			if status.CodeOf(err) != status.DeadlineExceeded {
				t.Errorf("an incomplete broadcast: %v", err)
			}
			if n := len(m.instances); n != 0 {
				t.Errorf("%d instances are left", n)
			}
		}
		// A device gives up while the other one waits. Then the source is another one.
		waited := make(chan error, 1)
		go func() {
			source, err := m.CompleteInstance(t.Context(), broadcast(1, 1, false))
			if err == nil && source != 0 {
				err = status.Internalf("the source is %d", source)
			}
			waited <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		// The same device as the one that waits: its first call stays.
		if _, err := m.CompleteInstance(ctx, broadcast(1, 1, false)); status.CodeOf(err) != status.Cancelled {
			t.Errorf("a cancelled call: %v", err)
		}
		if _, err := m.CompleteInstance(t.Context(), broadcast(1, 0, true)); err != nil {
			t.Error(err)
		}
		if err := <-waited; err != nil {
			t.Error(err)
		}
	})
}

// The records that peers leave are bounded in number, size and memory.
func TestBoundedRecords(t *testing.T) {
	m := ledGroup(t, 1)
	reduce := func(key int32, name string) error {
		_, err := m.CompleteInstance(t.Context(), &Instance{
			Group: 1, Size: 1, Key: key, Name: name, Kind: kernel.Reduction, Device: testDevice + "0",
		})
		return err
	}
	if err := reduce(1, "r"); err != nil {
		t.Fatal(err)
	}
	if err := reduce(2, strings.Repeat("x", maxText+1)); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a long name: %v", err)
	}
	long := groupMember(2, 1, 0)
	long.Device.Type = strings.Repeat("x", maxText+1)
	if _, err := m.CompleteGroup(t.Context(), long); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a long type: %v", err)
	}

	for i := range int32(maxRecords) {
		m.instances[instanceID{1, i, 7}] = &instance{done: make(chan struct{})}
	}
	if err := reduce(2, "r"); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("too many operations that wait: %v", err)
	}
	for _, i := range m.instances {
		if !i.isDone() {
			close(i.done)
		}
	}
	if err := reduce(2, "r"); err != nil || len(m.instances) != 1 {
		t.Errorf("too many finished operations: %v, %d are left", err, len(m.instances))
	}

	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(1)
	membudget.Take(1 << 20) // reads that there is nothing left
	err := reduce(3, "r")
	if status.CodeOf(err) != status.ResourceExhausted || !strings.Contains(err.Error(), "--memory-limit") || len(m.instances) != 0 {
		t.Errorf("without memory: %v, %d are left", err, len(m.instances))
	}
	if _, err := m.CompleteGroup(t.Context(), groupMember(3, 1, 0)); status.CodeOf(err) != status.ResourceExhausted || len(m.groups) != 1 {
		t.Errorf("a group without memory: %v, %d groups", err, len(m.groups))
	}
	if _, err := m.CompleteGroup(t.Context(), groupMember(1, 1, 0)); err != nil {
		t.Errorf("a group that exists: %v", err)
	}
}

// The size of a group is bounded, and the errors of many members that give up do not name all.
func TestLargeGroup(t *testing.T) {
	m := NewManager()
	if _, err := m.CompleteGroup(t.Context(), groupMember(1, maxMembers+1, 0)); status.CodeOf(err) != status.ResourceExhausted || len(m.groups) != 0 {
		t.Errorf("a group that is too large: %v", err)
	}
	described := &Group{Members: make([]Device, 10_000)}
	func() {
		defer membudget.SetLimit(membudget.Limit())
		membudget.SetLimit(1)
		_, err := described.Description(func() (any, error) { return 1, nil })
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("a description without memory: %v", err)
		}
	}()
	for range 2 {
		if got, err := described.Description(func() (any, error) { return 2, nil }); got != 2 || err != nil {
			t.Errorf("a description: %v, %v", got, err)
		}
	}
	g := &pendingGroup{size: maxMembers, members: map[string]joined{}}
	for i := range 10_000 {
		g.members[testDevice+strconv.Itoa(i)] = joined{}
	}
	err := m.missing(g, 1)
	if text := err.Error(); !strings.Contains(text, "10000 of 65535 devices have joined") || len(text) > 4096 {
		t.Errorf("got %.4096s", text)
	}
}
