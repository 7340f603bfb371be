// Package bulk copies and clears large memory without delaying the scheduler.
//
// The built-in functions copy and clear are single assembly functions, within which the scheduler
// cannot stop a goroutine. A garbage collection has to stop every goroutine, and all goroutines
// that allocate memory wait for it. For new memory, a copy of 1 GiB takes seconds on a busy
// machine, because the operating system provides each page. So these functions work in pieces, and
// let the scheduler stop the goroutine between two of them.
package bulk

// piece is the number of bytes between two points where the scheduler can stop the goroutine: about
// 0.1 ms, or a page of 2 MiB if the memory is new.
const piece = 1 << 20

// Copy copies min(len(dst), len(src)) bytes, and returns their number.
func Copy(dst, src []byte) int {
	n := min(len(dst), len(src))
	for at := 0; at < n; at += piece {
		SafePoint()
		end := min(n, at+piece)
		copy(dst[at:end], src[at:end])
	}
	return n
}

// Clear sets all bytes to 0.
func Clear(b []byte) {
	for at := 0; at < len(b); at += piece {
		SafePoint()
		clear(b[at:min(len(b), at+piece)])
	}
}

// SafePoint lets the scheduler stop the goroutine. It takes about a nanosecond. It is for loops
// over assembly functions.
//
// The scheduler stops goroutines by a signal. In a loop that spends nearly all of its time in
// assembly functions, no signal meets the Go code between them if the memory is new: a signal then
// waits until the operating system has provided a page, and meets the function that needs the page.
// A call of a function that calls another one checks whether the goroutine has to stop.
//
//go:noinline
func SafePoint() { nothing() }

//go:noinline
func nothing() {}
