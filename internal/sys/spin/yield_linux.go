package spin

import "syscall"

// YieldThread lets the kernel run another thread on this core first (sched_yield). It returns at
// once if no thread waits for the core.
//
// The Go scheduler is not told about the system call: the thread keeps its processor, whose
// goroutines run after the call.
func YieldThread() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
