package tensor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	hugePage = 2 << 20
	// minHuge is the size in bytes from which buffers ask for huge pages.
	minHuge = 256 << 10
	// ownHuge is the size from which they have enough of them to leave their ends to pages of the
	// usual size.
	ownHuge = 4 << 20
)

// adviseHuge asks the kernel to back mem with huge pages. The first touch of a large buffer then
// costs a fault every 2 MiB instead of every 4 KiB, and whoever copies from one process to another
// has as many fewer pages to look up. That the kernel may not care is of no interest.
//
// A buffer that is smaller than a huge page shares one with its neighbours, which have touched some
// of its memory already: there, the kernel has to put the huge page together. It must not do so by
// itself later, when most of the page may have been given back.
func adviseHuge(mem []byte) {
	if len(mem) < minHuge {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	end := start + uintptr(len(mem))
	if len(mem) >= ownHuge {
		madvise((start+hugePage-1)&^(hugePage-1), end&^(hugePage-1), unix.MADV_HUGEPAGE)
		return
	}
	for at := start; at < end; at = (at + hugePage) &^ (hugePage - 1) {
		mem[at-start] = 0 // what has no page at all stays as it is
	}
	madvise(start&^(hugePage-1), (end+hugePage-1)&^(hugePage-1), unix.MADV_COLLAPSE)
}

func madvise(start, end uintptr, advice int) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, uintptr(advice))
}
