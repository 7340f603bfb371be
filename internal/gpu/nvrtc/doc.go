// Package nvrtc compiles CUDA C to PTX with NVIDIA's library, which needs no GPU. The build of the
// project uses it; a program that runs does not.
//
// The environment variable WEFT_NVRTC names the library. PTX of version 11.8 for compute_52 loads
// on all GPUs since the GeForce GTX 900 and on all drivers since R520.
package nvrtc
