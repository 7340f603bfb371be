package parallel

import "syscall"

// yield lets the kernel choose again who runs on this core. Go's scheduler need not know: nothing
// can be done meanwhile that the goroutines of this thread could not do afterwards.
func yield() { _, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
