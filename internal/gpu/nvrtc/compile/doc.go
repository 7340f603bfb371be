// Command compile makes PTX of kernels that are written in the common subset of OpenCL C and
// CUDA C. Arguments are pairs of a source file and an output file. With -if-there before them, a
// machine without NVRTC is no error.
package main
