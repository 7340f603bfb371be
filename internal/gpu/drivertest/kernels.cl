// Kernels of the tests of drivers, in the common subset of OpenCL C and CUDA C.
#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define KERNEL __kernel void
#define GLOBAL __global
#define SHARED(T, name, n) __local T name[n]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define INDEX ((i64)get_global_id(0))
#define COUNT ((i64)get_global_size(0))
#define LOCAL ((int)get_local_id(0))
#define GROUP ((int)get_group_id(0))
#define SIZES ((i64)get_global_size(0) + 1000 * (i64)get_global_size(1) + 1000000 * (i64)get_global_size(2))
typedef long i64;
typedef ulong u64;
typedef uint u32;
#else
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define SHARED(T, name, n) __shared__ T name[n]
#define BARRIER() __syncthreads()
#define INDEX ((i64)blockIdx.x * blockDim.x + threadIdx.x)
#define COUNT ((i64)gridDim.x * blockDim.x)
#define LOCAL ((int)threadIdx.x)
#define GROUP ((int)blockIdx.x)
#define SIZES (COUNT + 1000 * (i64)gridDim.y * blockDim.y + 1000000 * (i64)gridDim.z * blockDim.z)
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
#endif
#define ARG(T, x) GLOBAL T *x##_base, i64 x##_at
#define USE(T, x) GLOBAL T *x = (GLOBAL T *)((GLOBAL char *)x##_base + x##_at)

KERNEL nothing(ARG(float, y)) {}

KERNEL add(ARG(float, z), ARG(float, x), ARG(float, y), i64 n) {
  USE(float, z);
  USE(float, x);
  USE(float, y);
  for (i64 i = INDEX; i < n; i += COUNT) z[i] = x[i] + y[i];
}

// One argument of each type.
typedef struct {
  i64 values[5];
} five;
KERNEL arguments(ARG(double, y), int a, u32 b, i64 c, u64 d, float e, double f, five g) {
  USE(double, y);
  if (INDEX) return;
  y[0] = a;
  y[1] = b;
  y[2] = c;
  y[3] = d;
  y[4] = e;
  y[5] = f;
  for (int i = 0; i < 5; i++) y[6 + i] = g.values[i];
  y[11] = SIZES;
}

// A group adds 128 elements of x by shared memory.
KERNEL groupsum(ARG(float, y), ARG(float, x)) {
  USE(float, y);
  USE(float, x);
  SHARED(float, part, 128);
  part[LOCAL] = x[GROUP * 128 + LOCAL];
  BARRIER();
  for (int d = 64; d > 0; d /= 2) {
    if (LOCAL < d) part[LOCAL] += part[LOCAL + d];
    BARRIER();
  }
  if (LOCAL == 0) y[GROUP] = part[0];
}

// x becomes 1 after many steps that depend on each other, if it is 0 before.
KERNEL slow(ARG(u32, x), i64 steps) {
  USE(u32, x);
  if (INDEX) return;
  u32 v = x[0] + 12345;
  for (i64 i = 0; i < steps; i++) v = v * 1664525u + 1013904223u;
  x[0] += v == 0 ? 2 : 1;
}
