package samehost

import (
	"context"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-ml/weft/internal/role/message"
	"github.com/weft-ml/weft/tensor"
)

// openSlots opens a channel and returns it with the lender's end of its slots.
func (p *pair) openSlots() (ch *channel, s *slots) {
	p.t.Helper()
	ch = p.open()
	p.until("there are slots", func() bool {
		p.lender.mu.Lock()
		defer p.lender.mu.Unlock()
		s = p.lender.channels[ch.number]
		return s != nil
	})
	return ch, s
}

// lend lends a tensor without a borrower that reads it.
func (p *pair) lend(ch *channel, t tensor.Tensor) *reply {
	p.t.Helper()
	resp := &message.RecvTensorResponse{Tensor: t.Retain()}
	if !p.lender.Lend(&message.RecvTensorRequest{StepID: 7, Transport: ch.offer}, resp) {
		p.t.Fatal("nothing was lent")
	}
	r, err := decodeReply(resp.Transport)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// Who wants the memory of a tensor that was lent has it as soon as the borrower has read it, which
// nobody was told.
func TestReclaim(t *testing.T) {
	x := random(tensor.Uint8, tensor.Shape{minLent})
	p := newSeeingPair(t, responses(x))
	_, s := p.openSlots()
	p.meddle = func(*message.RecvTensorResponse) {
		if x.Exclusive() {
			t.Error("the memory of a tensor that is lent is its owner's alone")
		}
	}
	for range 2 * numSlots {
		resp, err := p.recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		resp.Release()
		if n, _ := p.lendings(); n != 1 || s.used != 1 {
			t.Fatalf("%d loans, %d slots are used", n, s.used)
		}
		if !x.Exclusive() {
			t.Fatal("the memory of a tensor that was given back is not its owner's alone")
		}
		if n, _ := p.lendings(); n != 0 || s.used != 0 || p.lender.LeasedBytes() != 0 {
			t.Fatalf("%d loans, %d slots are used", n, s.used)
		}
	}
}

// Without slots that are free, and where tensors are large, the channel is told.
func TestNoSlot(t *testing.T) {
	x, larger := random(tensor.Uint8, tensor.Shape{minLent}), random(tensor.Uint8, tensor.Shape{maxSlotted + 1})
	p := newSeeingPair(t, responses(x))
	ch, _ := p.openSlots()
	given := map[uint64]*reply{}
	for range numSlots {
		r := p.lend(ch, x)
		given[r.slot] = r
	}
	if len(given) != numSlots || given[0] != nil {
		t.Fatalf("%d loans got %d slots", numSlots, len(given))
	}
	for _, r := range []*reply{p.lend(ch, x), p.lend(ch, larger)} {
		if r.slot != 0 {
			t.Errorf("a loan got slot %d", r.slot)
		}
		ch.giveBack(r)
	}
	p.until("the channel was told", func() bool { n, _ := p.lendings(); return n == numSlots })
	for _, r := range given {
		ch.giveBack(r)
	}
	if r := p.lend(ch, x); r.slot == 0 {
		t.Error("slots of what was given back are not used again")
	}
	if n, _ := p.lendings(); n != 1 {
		t.Errorf("there are %d loans", n)
	}
}

// What lies in a slot, or comes from the other end of the channel, ends no loan but its own.
func TestStrangeSlots(t *testing.T) {
	x := random(tensor.Uint8, tensor.Shape{minLent})
	p := newSeeingPair(t, responses(x))
	ch, _ := p.openSlots()
	late := p.lend(ch, x)
	p.lender.EndStep(7)
	r := p.lend(ch, x)
	if r.slot != late.slot {
		t.Fatalf("slot %d is not used again, but %d", late.slot, r.slot)
	}
	ch.giveBack(late)
	if p.lender.LeasedBytes() != minLent {
		t.Error("a ticket of a step that is over ended another loan")
	}
	ch.giveBack(&reply{slot: r.slot, ticket: 0})
	if ch.slots.giveBack(numSlots+1, r.ticket) || ch.slots.giveBack(^uint64(0), r.ticket) || p.lender.LeasedBytes() != minLent {
		t.Error("there is a slot too many")
	}
	ch.conn.Close() // what was not given back may still be asked for as bytes
	p.until("the channel has ended", func() bool { _, n := p.lendings(); return n == 0 })
	redeem := &message.RecvTensorRequest{StepID: 7, Transport: (&offer{channel: ch.number, redeem: r.ticket}).encode()}
	if resp, err := p.lender.FetchLeased(redeem); err != nil || !resp.Tensor.SharesBuffer(&x) {
		t.Errorf("%v, %v", resp, err)
	}
}

// Memory that could be taken away is not used for slots.
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
		t.Error("memory that can become less was taken")
	}
	if err := f.Truncate(slotsSize - 1); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK); err != nil {
		t.Fatal(err)
	}
	if _, err := mapSlots(f); err == nil {
		t.Error("memory that is too small was taken")
	}
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if _, err := mapSlots(dir); err == nil {
		t.Error("a directory was taken")
	}
}

// Who brings the response reads the tensor, unless others are still to come.
func TestReadAtOnce(t *testing.T) {
	p := newSeeingPair(t, responses(random(tensor.Uint8, tensor.Shape{minLent})))
	p.openSlots()
	start := func(main caller, done func()) {
		p.borrower.StartRecv(t.Context(), "there", &message.RecvTensorRequest{StepID: 7, Key: "k"}, Routes{main, main},
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
		<-returned // which would never come if this were the goroutine that asks
		close(over)
	})
	close(returned)
	<-over
	if answer(); read != 1 {
		t.Error("the last tensor was not read at once")
	}
}
