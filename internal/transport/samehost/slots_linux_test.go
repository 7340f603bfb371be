package samehost

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/tensor"
)

// openSlots opens a channel and returns it with the slots of the lender.
func (p *pair) openSlots() (ch *channel, s *slots) {
	p.t.Helper()
	ch = p.open()
	p.until("the lender has mapped the slots", func() bool {
		p.lender.mu.Lock()
		defer p.lender.mu.Unlock()
		s = p.lender.channels[ch.number]
		return s != nil
	})
	return ch, s
}

// lend leases a tensor that no borrower reads.
func (p *pair) lend(ch *channel, t tensor.Tensor) *reply {
	p.t.Helper()
	resp := &message.RecvTensorResponse{Tensor: t.Retain()}
	if !p.lender.Lend(&message.RecvTensorRequest{StepID: 7, Transport: ch.offer}, resp) {
		p.t.Fatal("no tensor was leased")
	}
	r, err := decodeReply(resp.Transport)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// The memory of a leased tensor can be reused as soon as the borrower has returned the lease,
// without a message to the lender.
func TestReclaim(t *testing.T) {
	x := random(tensor.Uint8, tensor.Shape{minLeased})
	p := newMemoryPair(t, responses(x))
	_, s := p.openSlots()
	p.tamper = func(*message.RecvTensorResponse) {
		if x.Exclusive() {
			t.Error("a leased tensor is exclusive")
		}
	}
	for range 2 * numSlots {
		resp, err := p.recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		resp.Release()
		if n, _ := p.counts(); n != 1 || s.used != 1 {
			t.Fatalf("%d leases, %d slots in use", n, s.used)
		}
		if !x.Exclusive() {
			t.Fatal("a tensor is not exclusive after its lease was returned")
		}
		if n, _ := p.counts(); n != 0 || s.used != 0 || p.lender.LeasedBytes() != 0 {
			t.Fatalf("%d leases, %d slots in use", n, s.used)
		}
	}
}

// If no slot is free, and for large tensors, leases are returned over the channel.
func TestNoSlot(t *testing.T) {
	x, larger := random(tensor.Uint8, tensor.Shape{minLeased}), random(tensor.Uint8, tensor.Shape{maxSlotSize + 1})
	p := newMemoryPair(t, responses(x))
	ch, _ := p.openSlots()
	leased := map[uint64]*reply{}
	for range numSlots {
		r := p.lend(ch, x)
		leased[r.slot] = r
	}
	if len(leased) != numSlots || leased[0] != nil {
		t.Fatalf("%d leases have %d slots", numSlots, len(leased))
	}
	for _, r := range []*reply{p.lend(ch, x), p.lend(ch, larger)} {
		if r.slot != 0 {
			t.Errorf("a lease has slot %d", r.slot)
		}
		ch.release(r)
	}
	p.until("the leases are returned", func() bool { n, _ := p.counts(); return n == numSlots })
	for _, r := range leased {
		ch.release(r)
	}
	if r := p.lend(ch, x); r.slot == 0 {
		t.Error("slots of returned leases are not reused")
	}
	if n, _ := p.counts(); n != 1 {
		t.Errorf("there are %d leases", n)
	}
}

// A value in a slot, or a message of the channel, ends only the lease that it names.
func TestWrongIDsInSlots(t *testing.T) {
	x := random(tensor.Uint8, tensor.Shape{minLeased})
	p := newMemoryPair(t, responses(x))
	ch, _ := p.openSlots()
	late := p.lend(ch, x)
	p.lender.EndStep(7)
	r := p.lend(ch, x)
	if r.slot != late.slot {
		t.Fatalf("slot %d is not reused, but %d", late.slot, r.slot)
	}
	ch.release(late)
	if p.lender.LeasedBytes() != minLeased {
		t.Error("the lease ID of an ended step ends another lease")
	}
	ch.release(&reply{slot: r.slot, leaseID: 0})
	if ch.slots.release(numSlots+1, r.leaseID) || ch.slots.release(^uint64(0), r.leaseID) || p.lender.LeasedBytes() != minLeased {
		t.Error("release accepts a slot out of range")
	}
	ch.conn.Close() // leases that were not returned can still be fetched
	p.until("the channel is closed", func() bool { _, n := p.counts(); return n == 0 })
	fetch := &message.RecvTensorRequest{StepID: 7, Transport: (&offer{channel: ch.number, fetch: r.leaseID}).encode()}
	if resp, err := p.lender.FetchLeased(fetch); err != nil || !resp.Tensor.SharesBuffer(&x) {
		t.Errorf("%v, %v", resp, err)
	}
}

// A file that can shrink is refused for slots.
func TestUnsealedSlots(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "slots")
	defer f.Close()
	if err := f.Truncate(slotsSize); err != nil {
		t.Fatal(err)
	}
	if _, err := mapSlots(f); err == nil {
		t.Error("a file that can shrink is mapped")
	}
	if err := f.Truncate(slotsSize - 1); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	if _, err := mapSlots(f); err == nil {
		t.Error("a file that is too small is mapped")
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := mapSlots(dir); err == nil {
		t.Error("a directory is mapped")
	}
}

// The goroutine that delivers the last outstanding response reads the tensor itself.
func TestReadByDeliveringGoroutine(t *testing.T) {
	p := newMemoryPair(t, responses(random(tensor.Uint8, tensor.Shape{minLeased})))
	p.openSlots()
	start := func(main taskFunc, done func()) {
		p.borrower.StartRecv(t.Context(), "peer", &message.RecvTensorRequest{StepID: 7, Key: "k"}, Routes{main, main},
			func(resp *message.RecvTensorResponse, err error) {
				if err != nil {
					t.Error(err)
				} else {
					resp.Release()
				}
				done()
			})
	}
	var answer func()
	read := 0
	start(func(ctx context.Context, req *message.RecvTensorRequest, done Done) {
		answer = func() { p.call(ctx, req, done) }
	}, func() { read++ })
	returned, over := make(chan struct{}), make(chan struct{})
	start(p.call, func() {
		<-returned // blocks forever if StartRecv calls this function
		close(over)
	})
	close(returned)
	<-over
	if answer(); read != 1 {
		t.Error("the last tensor was not read by the delivering goroutine")
	}
}
