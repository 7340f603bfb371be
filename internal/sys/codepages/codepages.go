// Package codepages gives back the memory of code that only the start of the process has used.
//
// The initialization of a program runs a little code in each of its packages. The kernel maps 64
// KiB of the file around each page that is touched, so nearly the whole program is resident after
// the start: 26 MiB of 35 MiB. An idle task uses 2.4 MiB. The kernel takes the other pages back
// only when memory is short, and then it may take pages that are needed first.
//
// Unmapping them once is safe, because they are unchanged pages of a file: the next use maps them
// again, which takes a microsecond for 64 KiB while the file is cached.
package codepages
