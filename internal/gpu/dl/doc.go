// Package dl opens C libraries while the program runs, without cgo.
//
// # Pointers
//
// A pointer that is passed to C as a number must be converted in the argument list of [Call] or of
// another function marked go:uintptrescapes:
//
//	dl.Call(fn, uintptr(unsafe.Pointer(&x)))
//
// Only there does the compiler see that x must not be on a stack, which moves when it grows. A
// function that returns the number hides it, and C then writes to the place where x was. The other
// allowed form is a pointer to a part of an object that is on the heap for another reason, with a
// comment at the end of the line that begins with "on the heap". The test of this package checks
// both in all packages of drivers.
package dl
