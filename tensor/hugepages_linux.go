package tensor

import (
	"syscall"
	"unsafe"
)

const (
	hugePage = 2 << 20
	// minHuge is the size in bytes from which buffers ask for huge pages.
	minHuge = 4 << 20
)

// adviseHuge asks the kernel to back the whole huge pages within mem with such. The first touch of a large buffer then costs
// a fault every 2 MiB instead of every 4 KiB, and whoever copies from one process to another has as many fewer pages to
// look up. That the kernel may not care is of no interest.
func adviseHuge(mem []byte) {
	if len(mem) < minHuge {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	first := (start + hugePage - 1) &^ (hugePage - 1)
	last := (start + uintptr(len(mem))) &^ (hugePage - 1)
	_ = syscall.Madvise(mem[first-start:last-start], syscall.MADV_HUGEPAGE)
}
