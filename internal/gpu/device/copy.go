package device

import (
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// smallCopy is the size in bytes up to which copies run on the compute stream. A stream of its own
// costs three more calls of the driver, about as long as the copy of that many bytes.
const smallCopy = 64 << 10

// ToDevice returns a copy of a tensor of the host on the device, with one reference. Work that is
// queued later sees its elements. The caller may release t at once.
func (d *Device) ToDevice(t *tensor.Tensor) (tensor.Tensor, error) {
	out, err := d.Alloc(t.DType(), t.Shape())
	if err != nil {
		return out, err
	}
	src := t.Bytes()
	if len(src) == 0 {
		return out, nil
	}
	staged, err := d.staging.take(len(src))
	if err == nil {
		copy(staged, src)
		dst, then := d.Mem(&out), func(error) { d.staging.put(staged) }
		if err = d.queueToDevice(dst, staged, then); err != nil {
			d.staging.put(staged)
		}
	}
	if err != nil {
		out.Release()
		return tensor.Tensor{}, err
	}
	d.counters.toDevice.Add(1)
	d.counters.toDeviceBytes.Add(int64(len(src)))
	return out, nil
}

func (d *Device) queueToDevice(dst driver.Mem, src []byte, then func(error)) error {
	w := work{do: func(s driver.Stream) error { return s.ToDevice(dst, src) }, kind: copyToDevice, bytes: len(src)}
	if len(src) <= smallCopy {
		return d.compute.queue(w, then)
	}
	d.in.mu.Lock()
	defer d.in.mu.Unlock()
	if err := d.in.waitForLocked(d.compute); err != nil { // for the last holder of the memory
		return err
	}
	if err := d.in.queueLocked(w, then); err != nil {
		return err
	}
	d.compute.mu.Lock()
	defer d.compute.mu.Unlock()
	e, err := d.in.s.Record(false)
	if err != nil {
		return d.check(err)
	}
	defer e.Close()
	return d.check(d.compute.s.Wait(e))
}

// ToHost copies a tensor of the device to the host. It calls done once with the copy, whose
// reference done owns, when all work that was queued before the call is done. The caller may
// release t at once. done runs on another goroutine and must not block, or it runs before ToHost
// returns.
func (d *Device) ToHost(t *tensor.Tensor, done func(tensor.Tensor, error)) {
	size := len(t.Bytes())
	if size == 0 {
		done(tensor.Alloc(t.DType(), t.Shape()))
		return
	}
	staged, err := d.staging.take(size)
	if err != nil {
		done(tensor.Tensor{}, err)
		return
	}
	dtype, shape, held := t.DType(), t.Shape(), t.Retain()
	then := func(err error) {
		held.Release()
		if err != nil {
			d.staging.put(staged)
			done(tensor.Tensor{}, err)
			return
		}
		d.unstage(dtype, shape, staged, done)
	}
	src := d.Mem(t)
	w := work{do: func(s driver.Stream) error { return s.ToHost(staged, src) }, kind: copyToHost, bytes: size}
	if err := d.queueToHost(w, then); err != nil {
		then(err)
		return
	}
	d.counters.toHost.Add(1)
	d.counters.toHostBytes.Add(int64(size))
}

func (d *Device) queueToHost(w work, then func(error)) error {
	if w.bytes <= smallCopy {
		return d.compute.queue(w, then)
	}
	d.out.mu.Lock()
	defer d.out.mu.Unlock()
	if err := d.out.waitForLocked(d.compute); err != nil {
		return err
	}
	return d.out.queueLocked(w, then)
}

// Host returns a copy of a tensor of the device on the host, and waits for it.
func (d *Device) Host(t *tensor.Tensor) (tensor.Tensor, error) {
	var out tensor.Tensor
	var err error
	came := make(chan struct{})
	d.ToHost(t, func(v tensor.Tensor, e error) {
		out, err = v, e
		close(came)
	})
	<-came
	return out, err
}

// Clone returns a copy of a tensor of the device on the same device. It implements tensormem's
// owner.
func (d *Device) Clone(t *tensor.Tensor) (tensor.Tensor, error) {
	out, err := d.Alloc(t.DType(), t.Shape())
	if err == nil {
		if err = d.CopyInto(&out, t); err != nil {
			out.Release()
			out = tensor.Tensor{}
		}
	}
	return out, err
}

// CopyInto queues a copy of the elements of src to those of dst, which has the same number of
// bytes. Both are on the device.
func (d *Device) CopyInto(dst, src *tensor.Tensor) error {
	if len(dst.Bytes()) != len(src.Bytes()) {
		return status.Internalf("cannot copy %d bytes to %d bytes", len(src.Bytes()), len(dst.Bytes()))
	}
	if len(src.Bytes()) == 0 {
		return nil
	}
	to, from := d.Mem(dst), d.Mem(src)
	w := work{do: func(s driver.Stream) error { return s.Copy(to, from) }, kind: copyWithin, bytes: from.Size}
	return d.compute.queue(w, nil)
}

// Take calls done once with a copy of t on the device. t is on another device. done owns the
// reference of the copy. It runs on another goroutine and must not block, or before Take returns.
// The caller may release t at once.
func (d *Device) Take(t *tensor.Tensor, done func(tensor.Tensor, error)) {
	from := Of(t)
	if from == nil || len(t.Bytes()) == 0 {
		done(d.ToDevice(t))
		return
	}
	if !d.dev.CanCopy(from.dev) {
		from.ToHost(t, func(host tensor.Tensor, err error) {
			if err != nil {
				done(host, err)
				return
			}
			out, err := d.ToDevice(&host)
			host.Release()
			done(out, err)
		})
		return
	}
	held := t.Retain()
	err := from.compute.after(func(err error) {
		if err != nil {
			held.Release()
			done(tensor.Tensor{}, err)
			return
		}
		done(d.pull(from, held))
	})
	if err != nil {
		held.Release()
		done(tensor.Tensor{}, err)
	}
}

// pull queues the copy of a tensor of another device, which has its elements. It takes over the
// reference.
func (d *Device) pull(from *Device, held tensor.Tensor) (tensor.Tensor, error) {
	out, err := d.Alloc(held.DType(), held.Shape())
	if err != nil {
		held.Release()
		return out, err
	}
	dst, src := d.Mem(&out), from.Mem(&held)
	w := work{do: func(s driver.Stream) error { return s.CopyFrom(dst, from.dev, src) }, kind: copyFromPeer, bytes: src.Size}
	if err = d.compute.queue(w, func(error) { held.Release() }); err != nil {
		held.Release()
		out.Release()
		return tensor.Tensor{}, err
	}
	d.counters.peer.Add(1)
	d.counters.peerBytes.Add(int64(src.Size))
	return out, nil
}

// After calls f when all work that is queued on the compute stream is done. f runs on another
// goroutine and must not block.
func (d *Device) After(f func(error)) {
	if err := d.compute.after(f); err != nil {
		f(err)
	}
}

// Sync waits until all work that is queued on the compute stream is done.
func (d *Device) Sync() error {
	came := make(chan error, 1)
	d.After(func(err error) { came <- err })
	return <-came
}

// unstage calls done with a tensor that has the elements in staging memory.
func (d *Device) unstage(dtype tensor.DType, shape tensor.Shape, staged []byte, done func(tensor.Tensor, error)) {
	move := func() {
		out, err := tensor.Alloc(dtype, shape)
		if err == nil {
			copy(out.Bytes(), staged)
		}
		d.staging.put(staged)
		done(out, err)
	}
	if len(staged) < minMoved {
		move()
		return
	}
	d.moves.Go(move)
}
