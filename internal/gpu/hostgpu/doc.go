// Package hostgpu is a driver of GPUs that exist in software only, for tests of everything above
// drivers. It needs no library and no build tag.
//
// It is strict where real devices are lenient, so that mistakes show in tests:
//
//   - Memory on a device is other memory than the host's, and new memory contains garbage.
//   - Every piece of work is late by a random time. Work that waits for too little computes with
//     wrong values in some runs. Since memory on the device is Go memory, the race detector reports
//     a missing wait by itself.
//   - Work on memory that was freed, that belongs to another device or that ends before the piece
//     is an error, which stays as on a real device.
//
// Kernels are Go functions, registered by name with [RegisterKernel].
package hostgpu
