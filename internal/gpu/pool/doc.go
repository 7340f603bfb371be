// Package pool cuts a device's memory into pieces as TensorFlow's allocator BFC ("best fit with
// coalescing") does. A driver's own allocation is slow, and waits for the device.
//
// Memory comes in regions from a [Source]. A region is a list of chunks, whose sizes are multiples
// of 256 bytes. Free chunks are in bins by size. An allocation takes the smallest free chunk that
// is large enough, and splits it if the rest is worth it; a chunk that becomes free is joined with
// free neighbours.
//
// The pool never reads or writes the memory. It may return a piece whose former owner has work
// queued: on one stream, work of the next owner runs later.
//
// The algorithm follows TensorFlow's xla/tsl/framework/bfc_allocator.cc and allocator_retry.cc.
package pool
