// Package opencl is the driver for devices of OpenCL 1.2 and later: GPUs of AMD, Intel and NVIDIA,
// and, for tests, processors. It opens libOpenCL.so.1, which is part of the system's packages; the
// vendor's driver brings the implementation behind it.
//
// # Environment
//
// WEFT_OPENCL names another library. WEFT_OPENCL_CPU=1 lets processors count as devices.
package opencl
