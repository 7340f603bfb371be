// Command makeptx compiles the families of kernels in package source to PTX, with NVRTC of CUDA
// 11.8, which needs no GPU. The argument is the folder of the results. Families whose text has not
// changed since the last time are left alone.
package main
