package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weft-ml/weft/status"
)

const (
	probeTime = 90 * time.Second // the longest time that a probe may take
	aloneTime = time.Second      // the time for which the neighbor runs alone
	// neighborStall is the longest step of a neighbor that is no fault. The probes use all cores,
	// so a step waits for its turn.
	neighborStall = 5 * time.Second
	// leftLimit is the resident memory, in bytes, to which a server has to return.
	leftLimit = 512 << 20
	leftTime  = 20 * time.Second // the time for that
)

// report is the outcome of a probe.
type report struct {
	err           error // of the probe
	peak, left    int64 // bytes
	alone, during time.Duration
	longest       time.Duration
	faults        []string
	log           string
}

func (r *report) faultf(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// runProbe runs a probe against a server of its own.
func runProbe(ctx context.Context, t *target, p probe) *report {
	r := &report{}
	dir, err := os.MkdirTemp("", "weft-probe-files")
	if err != nil {
		r.faultf("%v", err)
		return r
	}
	defer os.RemoveAll(dir)
	if p.rooted {
		p.args = append(slices.Clone(p.args), "--file-root=probe="+dir)
	}
	s, err := startServer(t, p.name, p.args)
	if err != nil {
		r.faultf("starting the server: %v", err)
		return r
	}
	defer func() { r.log = s.stop() }()
	n, err := startNeighbor(ctx, s.address)
	if err != nil {
		r.faultf("the neighbor: %v", err)
		return r
	}
	pause(ctx, aloneTime)
	r.alone = n.takeP99()
	r.err = attack(ctx, s.address, dir, p)
	r.during, r.longest = n.takeP99(), n.longest()
	switch {
	case r.err == nil && !p.mayPass:
		r.faultf("no error")
	case errors.Is(r.err, errSilent):
		r.faultf("%v", r.err)
	case r.err != nil && (!p.expects(status.CodeOf(r.err)) || !strings.Contains(r.err.Error(), p.text)):
		r.faultf("%v: %.300v; want %v with %q", status.CodeOf(r.err), r.err, p.codes, p.text)
	}
	err = n.stop()
	if s.hasEnded() {
		r.faults = nil // they follow from this one
		r.faultf("the server ended: %s", s.reason())
		return r
	}
	if err != nil {
		r.faultf("the neighbor: %v", err)
	}
	if err := reset(ctx, s.address); err != nil {
		r.faultf("afterwards: %v", err)
	}
	r.left = s.settle(ctx)
	if r.longest > neighborStall {
		r.faultf("a step of the neighbor took %v", r.longest)
	}
	if r.left > leftLimit {
		r.faultf("%d MiB are left", r.left>>20)
	}
	if r.peak = s.peak(); r.peak > t.memory {
		r.faultf("%d MiB were resident", r.peak>>20)
	}
	return r
}

// expects reports whether the error of a probe may have a code.
func (p *probe) expects(code status.Code) bool {
	if len(p.codes) == 0 {
		return code == status.ResourceExhausted
	}
	return slices.Contains(p.codes, code)
}

// attack runs a probe on a connection of its own.
func attack(ctx context.Context, address, dir string, p probe) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	c, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.close()
	c.dir = dir
	return p.run(c)
}

// settle waits until the server has given its memory back, and returns what it still holds.
func (s *server) settle(ctx context.Context) int64 {
	end := time.Now().Add(leftTime)
	for {
		left := s.resident()
		if left <= leftLimit || time.Now().After(end) || ctx.Err() != nil {
			return left
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
