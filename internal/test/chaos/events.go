package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// An event is a fault of one task. It returns when the fault has ended. Its duration comes from r.
// A cluster with certificates gets one more row, which lets them expire.
type event struct {
	name   string
	weight int
	do     func(ctx context.Context, p *process, r *rand.Rand) error
}

var events = []event{
	{"kill", 6, func(ctx context.Context, p *process, r *rand.Rand) error {
		return restart(ctx, p, syscall.SIGKILL, r, "")
	}},
	{"terminate", 3, func(ctx context.Context, p *process, r *rand.Rand) error {
		return restart(ctx, p, syscall.SIGTERM, r, "")
	}},
	{"stop", 3, func(ctx context.Context, p *process, r *rand.Rand) error {
		p.signal(syscall.SIGSTOP)
		pause(ctx, time.Duration(1+r.IntN(30))*time.Second)
		p.signal(syscall.SIGCONT)
		return nil
	}},
	{"cut", 4, func(ctx context.Context, p *process, r *rand.Rand) error {
		p.link.set(true, false, 0)
		p.link.cut()
		pause(ctx, time.Duration(r.IntN(5000))*time.Millisecond)
		p.link.set(false, false, 0)
		return nil
	}},
	{"slow", 3, func(ctx context.Context, p *process, r *rand.Rand) error {
		p.link.set(false, false, time.Duration(20+r.IntN(180))*time.Millisecond)
		pause(ctx, 5*time.Second)
		p.link.set(false, false, 0)
		return nil
	}},
	{"black hole", 3, func(ctx context.Context, p *process, r *rand.Rand) error {
		p.link.set(false, true, 0)
		pause(ctx, time.Duration(1+r.IntN(45))*time.Second)
		p.link.set(false, false, 0)
		return nil
	}},
	{"full disk", 2, func(ctx context.Context, p *process, r *rand.Rand) error {
		return disk(ctx, p, r, "fileio/write=enospc:0.3")
	}},
	{"bad disk", 2, func(ctx context.Context, p *process, r *rand.Rand) error {
		return disk(ctx, p, r, "fileio/write=eio:0.1,fileio/sync=eio:0.1,fileio/rename=eio:0.05,fileio/open=eio:0.05,fileio/read-at=eio:0.02")
	}},
	{"memory", 2, func(ctx context.Context, p *process, _ *rand.Rand) error {
		return fill(ctx, p)
	}},
}

// restart ends a task and starts it again after up to two seconds.
func restart(ctx context.Context, p *process, s syscall.Signal, r *rand.Rand, failpoints string) error {
	p.signal(s)
	p.wait()
	pause(ctx, time.Duration(r.IntN(2000))*time.Millisecond)
	return p.start(failpoints)
}

// disk lets a task live with a disk that fails, for 10 seconds.
func disk(ctx context.Context, p *process, r *rand.Rand, failpoints string) error {
	if err := restart(ctx, p, syscall.SIGTERM, r, failpoints); err != nil {
		return err
	}
	pause(ctx, 10*time.Second)
	return restart(ctx, p, syscall.SIGTERM, r, "")
}

// fill makes a task allocate until its memory limit for a few seconds. Each step must fail with an
// error, and not end the process.
func fill(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	s := op.NewScope().WithDevice(p.task.String())
	var parts []op.Output
	for range 40 { // of 32 MiB, more than the limit together
		parts = append(parts, op.RandomUniform(s, op.Const(s, []int32{8 << 20}), tensor.Float32))
	}
	sum := op.AddN(s, parts)
	g, err := s.Finalize()
	if err != nil {
		return err
	}
	target := "grpc://" + p.link.address()
	for ctx.Err() == nil {
		sess, err := weft.NewSession(target, g, weft.WithDeviceFilters(p.task.String()))
		if err != nil {
			return fmt.Errorf("filling the memory: %w", err)
		}
		_ = sess.Exec(ctx, nil, sum.Node) // fails, or finds room
		sess.Close()
	}
	return nil
}

// pick returns a random event by weight.
func pick(r *rand.Rand, from []event) event {
	total := 0
	for _, e := range from {
		total += e.weight
	}
	n := r.IntN(total)
	for _, e := range from {
		if n -= e.weight; n < 0 {
			return e
		}
	}
	return from[0]
}
