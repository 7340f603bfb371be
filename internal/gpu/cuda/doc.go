// Package cuda is the driver for NVIDIA's GPUs. It uses the interface of the kernel driver's own
// library, libcuda.so.1, which is there wherever the driver is. Kernels come as PTX, which that
// library compiles for the GPU. Matrix products and convolutions use cuBLAS and cuDNN where they
// are installed.
//
// # Contexts and threads
//
// The current context is a property of a thread, and goroutines change threads. Every entry locks
// its goroutine to the thread, sets the device's primary context, and unlocks it at the end. The
// primary context is the one that cuBLAS and cuDNN use, too.
//
// The environment variable WEFT_CUDA names another library, for tests.
package cuda
