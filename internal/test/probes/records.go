package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

const (
	recordTime    = 4 * time.Second // the time for which small records are made
	recordClients = 4               // the connections that make them
	// recordMaster is the master of the sessions that a probe leaves on the task.
	recordMaster = "/job:probe/replica:0/task:0"
	// recordDevice is a device of the task.
	recordDevice = "/job:ps/replica:0/task:0/device:CPU:0"
)

// records is a probe of something small that each request leaves on the task. It fills nearly all
// of the memory with graphs, and then makes small records for a time.
func records(name string, prepare func(c *client) error, leave func(c *client, i int) error) probe {
	return probe{name: "records-" + name, run: func(c *client) error {
		refused := c.fillGraphs()
		if status.CodeOf(refused) != status.ResourceExhausted {
			return refused
		}
		var err error
		if prepare != nil {
			err = prepare(c)
		}
		if err == nil {
			err = c.leaveMany(leave)
		}
		if dropErr := c.dropRecords(); dropErr != nil {
			return fmt.Errorf("dropping what is left: %w", dropErr)
		}
		if err != nil {
			return err
		}
		return refused
	}}
}

// leaveSession creates a session of an incarnation of recordMaster on the task.
func (c *client) leaveSession(handle string, incarnation int64) (string, error) {
	create := &pb.CreateWorkerSessionRequest{SessionHandle: handle, MasterTask: recordMaster, MasterIncarnation: incarnation}
	return handle, c.conn.Invoke(c.ctx, rpc.MethodCreateWorkerSession, create)
}

// dropRecords ends the sessions that the probe has left on the task.
func (c *client) dropRecords() error {
	remove := func(handle string) error {
		return c.conn.Invoke(c.ctx, rpc.MethodDeleteWorkerSession, &pb.DeleteWorkerSessionRequest{SessionHandle: handle})
	}
	if err := remove("large"); err != nil {
		return err
	}
	var err error
	for range 20 { // the memory is free a little later
		// a session of another incarnation of the master ends the others
		if _, err = c.leaveSession("last", 2); err == nil {
			return remove("last")
		}
		pause(c.ctx, 500*time.Millisecond)
	}
	return err
}

// fillGraphs registers graphs of 20 MiB in a session on the task, until one is refused.
func (c *client) fillGraphs() error {
	handle, err := c.leaveSession("large", 1)
	content := make([]byte, 20<<20)
	for i := 0; i < 1000 && err == nil; i++ {
		err = c.leaveGraph(handle, content, i)
	}
	return err
}

// leaveGraph registers a graph with a constant.
func (c *client) leaveGraph(session string, content []byte, i int) error {
	g := constant(int64(len(content)/4), content)
	g.Node[0].Name, g.Node[0].Device = fmt.Sprint("c", i), recordDevice
	return c.conn.Invoke(c.ctx, rpc.MethodRegisterGraph, &pb.RegisterGraphRequest{SessionHandle: session, CreateWorkerSessionCalled: true, GraphDef: g})
}

// leaveMany calls leave again and again, with several connections. It returns an error other than
// that of a limit.
func (c *client) leaveMany(leave func(c *client, i int) error) error {
	ctx, cancel := context.WithTimeout(c.ctx, recordTime)
	defer cancel()
	var next atomic.Int64
	errs := make([]error, recordClients)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			other, err := dial(ctx, c.address)
			if err != nil {
				errs[i] = err
				return
			}
			defer other.close()
			for ctx.Err() == nil {
				err := leave(other, int(next.Add(1)))
				code := status.CodeOf(err)
				if code == status.DeadlineExceeded { // of ctx, which the call may find first
					return
				}
				if err != nil && code != status.ResourceExhausted && ctx.Err() == nil {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// joinGroup makes a collective group of the device of the task.
func (c *client) joinGroup(key int, device string) error {
	return c.conn.Invoke(c.ctx, rpc.MethodCompleteGroup, &pb.CompleteGroupRequest{
		GroupKey: int32(key), GroupSize: 1, DeviceType: "CPU", DeviceAttributes: &pb.DeviceAttributes{Name: device, DeviceType: "CPU"},
	})
}

// longName is a name of 4,000 bytes.
func longName(i int) string { return fmt.Sprintf("probe%d_%s", i, bytes.Repeat([]byte{'x'}, 3980)) }

var recordProbes = []probe{
	records("sessions", nil, func(c *client, i int) error {
		_, err := c.leaveSession(longName(i), 1)
		return err
	}),
	records("graphs", nil, func(c *client, i int) error { return c.leaveGraph("large", make([]byte, 15_000), i) }),
	records("groups", nil, func(c *client, i int) error { return c.joinGroup(i, recordDevice) }),
	records("instances", func(c *client) error { return c.joinGroup(1, recordDevice) }, func(c *client, i int) error {
		return c.conn.Invoke(c.ctx, rpc.MethodCompleteInstance, &pb.CompleteInstanceRequest{
			Name: longName(i), GroupKey: 1, GroupSize: 1, Device: recordDevice, InstanceKey: int32(i),
		})
	}),
	{name: "step-sequence-keys", text: "keys", run: func(c *client) error {
		return c.invoke(rpc.MethodGetStepSequence, repeatField(1, make([]byte, 100<<20)))
	}},
	{name: "partial-run-names", run: func(c *client) error {
		handle, err := c.create(&pb.GraphDef{})
		if err != nil {
			return err
		}
		return c.invoke(rpc.MethodPartialRunSetup, append(repeatField(1, []byte(handle)), bytes.Repeat([]byte{0x12, 0}, 50<<20)...))
	}},
	{name: "partial-run-names-few", text: "feeds, fetches and targets", run: func(c *client) error {
		handle, err := c.create(&pb.GraphDef{})
		if err != nil {
			return err
		}
		return c.invoke(rpc.MethodPartialRunSetup, append(repeatField(1, []byte(handle)), bytes.Repeat([]byte{0x12, 0}, 2<<20)...))
	}},
	{name: "callable-names", text: "feeds, fetches and targets", run: func(c *client) error {
		handle, err := c.session("a = Placeholder() dtype=float\ny = Identity(a)\n")
		for i := 0; i < 5 && err == nil; i++ {
			options := append(repeatField(1, []byte("a:0")), bytes.Repeat(repeatField(2, []byte("y:0")), 10<<20+i)...)
			err = c.invoke(rpc.MethodMakeCallable, append(repeatField(1, []byte(handle)), repeatField(2, options)...))
		}
		return err
	}},
	{name: "stale-master", codes: []status.Code{status.PermissionDenied}, text: "incarnation", run: func(c *client) error {
		// the sessions of the task's own master are those of all clients
		create := &pb.CreateWorkerSessionRequest{SessionHandle: "probe", MasterTask: "/job:ps/replica:0/task:0", MasterIncarnation: 12345}
		return c.conn.Invoke(c.ctx, rpc.MethodCreateWorkerSession, create)
	}},
}
