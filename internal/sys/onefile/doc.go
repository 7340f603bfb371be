// Package onefile lets one program be both static and able to open C libraries.
//
// A program with the build tag gpu needs the system's loader and libc, so it does not start where
// there is no glibc. If it is linked with -ldflags="-E weft_entry", and then its request for a
// loader is removed (command nointerp), the kernel starts it as it starts a static program. The
// entry point sees that no loader ran, and tells Go's runtime that there is no C. Such a program
// cannot open libraries; [Reload] starts it once more by the loader, in the same process.
//
// The simple design is two programs. One program is what a user can copy to any machine.
//
// The entry point depends on names inside Go's runtime and purego, for amd64 on Linux. A test
// builds and starts a program of this kind.
package onefile
