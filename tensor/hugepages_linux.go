package tensor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	hugePage = 2 << 20
	// minHuge is the smallest buffer, in bytes, for which huge pages are requested.
	minHuge = 256 << 10
	// ownHuge is the smallest buffer, in bytes, that spans enough huge pages to leave its ends on
	// small pages.
	ownHuge = 4 << 20
)

// adviseHuge asks the kernel to back mem with huge pages. The first touch of a large buffer then
// costs a page fault per 2 MiB instead of per 4 KiB, and copying from another process looks up
// fewer pages. Failure is harmless and is ignored.
//
// A buffer smaller than a huge page shares one with its neighbours, which have touched some of its
// memory already. There the kernel must assemble the huge page now, and not by itself later, when
// most of the page may have been returned.
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
		mem[at-start] = 0 // a page without memory stays as it is
	}
	madvise(start&^(hugePage-1), (end+hugePage-1)&^(hugePage-1), unix.MADV_COLLAPSE)
}

func madvise(start, end uintptr, advice int) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, uintptr(advice))
}
