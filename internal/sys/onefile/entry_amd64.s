//go:build gpu && linux

#include "textflag.h"

// weft_entry is the entry point of a program that is linked with -E weft_entry. A loader leaves the
// address of its exit function in DX; the kernel, which starts a program without a loader, leaves 0.
// In this case nothing of libc is there, so what purego set for Go's runtime is unset.
TEXT weft_entry(SB),NOSPLIT|NOFRAME|TOPFRAME,$0
	TESTQ DX, DX
	JNE   loaded
	MOVB  $1, ·alone(SB)
	MOVB  $0, runtime·iscgo(SB)
	MOVQ  $0, _cgo_init(SB)
	MOVQ  $0, _cgo_thread_start(SB)
	MOVQ  $0, _cgo_notify_runtime_init_done(SB)
	MOVQ  $0, _cgo_sys_thread_create(SB)
	MOVQ  $0, _cgo_bindm(SB)
	MOVQ  $0, _cgo_getstackbound(SB)
	MOVQ  $0, _cgo_pthread_key_created(SB)
	MOVQ  $0, _cgo_callers(SB)
	MOVQ  $0, runtime·_cgo_setenv(SB)
	MOVQ  $0, runtime·_cgo_unsetenv(SB)

loaded:
	JMP _rt0_amd64_linux(SB)
