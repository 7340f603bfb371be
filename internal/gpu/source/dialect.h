// The common subset of OpenCL C and CUDA C that the kernels are written in.
//
// A pointer argument is a region and an offset in bytes, because the buffers of OpenCL 1.2 are
// handles. With CUDA the region is an address.
#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
#define KERNEL __kernel void
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT __constant
#define SHARED(T, name, n) __local T name[n]
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define GLOBAL_ID(d) ((i64)get_global_id(d))
#define GLOBAL_SIZE(d) ((i64)get_global_size(d))
#define LOCAL_ID(d) ((int)get_local_id(d))
#define LOCAL_SIZE(d) ((int)get_local_size(d))
#define GROUP_ID(d) ((int)get_group_id(d))
#define GROUPS(d) ((int)get_num_groups(d))
#define RESTRICT restrict
#define INLINE static inline
#define LOAD_HALF(p, i) vload_half((i), (GLOBAL const half *)(p))
#define STORE_HALF(v, p, i) vstore_half_rte((v), (i), (GLOBAL half *)(p))
#define BITS(x) as_uint(x)
#define FLOAT(x) as_float(x)
#define BITS64(x) as_ulong(x)
#define DOUBLE(x) as_double(x)
#define MULHI(a, b) mul_hi((u32)(a), (u32)(b))
#define POPCOUNT(x) popcount(x)
#define MAKE_c64(a, b) ((float2)((a), (b)))
#define MAKE_c128(a, b) ((double2)((a), (b)))
#define INF INFINITY
#define ATOMIC_ADD(p, v) atomic_add((p), (v))
#else
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define LOCAL
#define CONSTANT static __constant__
#define SHARED(T, name, n) __shared__ T name[n]
#define BARRIER() __syncthreads()
#define DIM_(v, d) ((d) == 0 ? v.x : (d) == 1 ? v.y : v.z)
#define GLOBAL_ID(d) ((i64)DIM_(blockIdx, d) * DIM_(blockDim, d) + DIM_(threadIdx, d))
#define GLOBAL_SIZE(d) ((i64)DIM_(gridDim, d) * DIM_(blockDim, d))
#define LOCAL_ID(d) ((int)DIM_(threadIdx, d))
#define LOCAL_SIZE(d) ((int)DIM_(blockDim, d))
#define GROUP_ID(d) ((int)DIM_(blockIdx, d))
#define GROUPS(d) ((int)DIM_(gridDim, d))
#define RESTRICT __restrict__
#define INLINE static __device__ __forceinline__
// NVRTC has no header for 16-bit floats of its own.
INLINE float half_to_float(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
INLINE u16 float_to_half(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
#define LOAD_HALF(p, i) half_to_float((p)[i])
#define STORE_HALF(v, p, i) ((p)[i] = float_to_half(v))
#define BITS(x) __float_as_uint(x)
#define FLOAT(x) __uint_as_float(x)
#define BITS64(x) ((u64)__double_as_longlong(x))
#define DOUBLE(x) __longlong_as_double((i64)(x))
#define MULHI(a, b) __umulhi((u32)(a), (u32)(b))
INLINE int popcount_(u32 x) { return __popc(x); }
INLINE int popcount_(u64 x) { return __popcll(x); }
#define POPCOUNT(x) popcount_(x)
#define MAKE_c64(a, b) make_float2((a), (b))
#define MAKE_c128(a, b) make_double2((a), (b))
#define INF __int_as_float(0x7f800000)
#define ATOMIC_ADD(p, v) atomicAdd((p), (v))
#endif
// No product is fused with a sum unless FMA is written: elementwise results have the CPU's bits.
#define FMA(a, b, c) fma(a, b, c)
#define NAN_ FLOAT(0x7fc00000u)

typedef float f32;
typedef double f64;
typedef float2 c64;
typedef double2 c128;

// S_T is the type in memory of elements of type T, and C_T the type for computing with them. Half
// and bfloat16 are stored as 16 bits and computed as float.
#define S_f16 u16
#define S_bf16 u16
#define S_f32 f32
#define S_f64 f64
#define S_i8 i8
#define S_i16 i16
#define S_i32 i32
#define S_i64 i64
#define S_u8 u8
#define S_u16 u16
#define S_u32 u32
#define S_u64 u64
#define S_b8 u8
#define S_c64 c64
#define S_c128 c128
#define C_f16 f32
#define C_bf16 f32
#define C_f32 f32
#define C_f64 f64
#define C_i8 i8
#define C_i16 i16
#define C_i32 i32
#define C_i64 i64
#define C_u8 u8
#define C_u16 u16
#define C_u32 u32
#define C_u64 u64
#define C_b8 u8
#define C_c64 c64
#define C_c128 c128

INLINE float load_bfloat16(GLOBAL const u16 *p, i64 i) { return FLOAT((u32)p[i] << 16); }
INLINE void store_bfloat16(float v, GLOBAL u16 *p, i64 i) {
  u32 b = BITS(v);
  p[i] = v != v ? (u16)(0x7fc0 | (b >> 16 & 0x8000)) : (u16)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
#define PLAIN_LOAD(p, i) ((p)[i])
#define PLAIN_STORE(p, i, v) ((p)[i] = (v))
#define LD_f16(p, i) LOAD_HALF(p, i)
#define LD_bf16(p, i) load_bfloat16(p, i)
#define LD_f32 PLAIN_LOAD
#define LD_f64 PLAIN_LOAD
#define LD_i8 PLAIN_LOAD
#define LD_i16 PLAIN_LOAD
#define LD_i32 PLAIN_LOAD
#define LD_i64 PLAIN_LOAD
#define LD_u8 PLAIN_LOAD
#define LD_u16 PLAIN_LOAD
#define LD_u32 PLAIN_LOAD
#define LD_u64 PLAIN_LOAD
#define LD_b8 PLAIN_LOAD
#define LD_c64 PLAIN_LOAD
#define LD_c128 PLAIN_LOAD
#define ST_f16(p, i, v) STORE_HALF(v, p, i)
#define ST_bf16(p, i, v) store_bfloat16(v, p, i)
#define ST_f32 PLAIN_STORE
#define ST_f64 PLAIN_STORE
#define ST_i8 PLAIN_STORE
#define ST_i16 PLAIN_STORE
#define ST_i32 PLAIN_STORE
#define ST_i64 PLAIN_STORE
#define ST_u8 PLAIN_STORE
#define ST_u16 PLAIN_STORE
#define ST_u32 PLAIN_STORE
#define ST_u64 PLAIN_STORE
#define ST_b8 PLAIN_STORE
#define ST_c64 PLAIN_STORE
#define ST_c128 PLAIN_STORE

// Arguments: IN and OUT declare a pointer, USE_IN and USE_OUT make it.
#define IN(T, x) GLOBAL const T *RESTRICT x##_base, i64 x##_at
#define OUT(T, x) GLOBAL T *x##_base, i64 x##_at
#define USE_IN(T, x) \
  GLOBAL const T *RESTRICT x = (GLOBAL const T *)((GLOBAL const char *)x##_base + x##_at)
#define USE_OUT(T, x) GLOBAL T *x = (GLOBAL T *)((GLOBAL char *)x##_base + x##_at)
// EACH is a loop over n elements, which all work items of all groups share. EACH1 is for large bodies.
#define NO_UNROLL _Pragma("unroll 1")
#define EACH(i, n) for (i64 i = GLOBAL_ID(0); i < (n); i += GLOBAL_SIZE(0))
#define EACH1(i, n) NO_UNROLL EACH(i, n)

// Most dimensions that a kernel traverses. Dimensions that are contiguous are merged before.
#define DIMS 12
// A loop over up to DIMS dimensions, the last one innermost, with strides of up to 4 operands in
// elements.
typedef struct {
  u32 rank, unused;
  u32 size[DIMS];
  i64 stride[4][DIMS];
} Loop;
// WALK declares the offsets o0 to o3 of the operands for element i of a loop.
#define WALK1(l, i)                                                 \
  i64 o0 = 0;                                                       \
  {                                                                 \
    u32 r_ = (u32)(i);                                              \
    NO_UNROLL                                                       \
    for (int d_ = (int)(l).rank - 1; d_ > 0; d_--) {                \
      u32 q_ = r_ / (l).size[d_], c_ = r_ - q_ * (l).size[d_];      \
      o0 += c_ * (l).stride[0][d_];                                 \
      r_ = q_;                                                      \
    }                                                               \
    o0 += r_ * (l).stride[0][0];                                    \
  }
#define WALK2(l, i)                                                 \
  i64 o0 = 0, o1 = 0;                                               \
  {                                                                 \
    u32 r_ = (u32)(i);                                              \
    NO_UNROLL                                                       \
    for (int d_ = (int)(l).rank - 1; d_ > 0; d_--) {                \
      u32 q_ = r_ / (l).size[d_], c_ = r_ - q_ * (l).size[d_];      \
      o0 += c_ * (l).stride[0][d_];                                 \
      o1 += c_ * (l).stride[1][d_];                                 \
      r_ = q_;                                                      \
    }                                                               \
    o0 += r_ * (l).stride[0][0];                                    \
    o1 += r_ * (l).stride[1][0];                                    \
  }
#define WALK3(l, i)                                                 \
  i64 o0 = 0, o1 = 0, o2 = 0;                                       \
  {                                                                 \
    u32 r_ = (u32)(i);                                              \
    NO_UNROLL                                                       \
    for (int d_ = (int)(l).rank - 1; d_ > 0; d_--) {                \
      u32 q_ = r_ / (l).size[d_], c_ = r_ - q_ * (l).size[d_];      \
      o0 += c_ * (l).stride[0][d_];                                 \
      o1 += c_ * (l).stride[1][d_];                                 \
      o2 += c_ * (l).stride[2][d_];                                 \
      r_ = q_;                                                      \
    }                                                               \
    o0 += r_ * (l).stride[0][0];                                    \
    o1 += r_ * (l).stride[1][0];                                    \
    o2 += r_ * (l).stride[2][0];                                    \
  }
#define WALK4(l, i)                                                 \
  i64 o0 = 0, o1 = 0, o2 = 0, o3 = 0;                               \
  {                                                                 \
    u32 r_ = (u32)(i);                                              \
    NO_UNROLL                                                       \
    for (int d_ = (int)(l).rank - 1; d_ > 0; d_--) {                \
      u32 q_ = r_ / (l).size[d_], c_ = r_ - q_ * (l).size[d_];      \
      o0 += c_ * (l).stride[0][d_];                                 \
      o1 += c_ * (l).stride[1][d_];                                 \
      o2 += c_ * (l).stride[2][d_];                                 \
      o3 += c_ * (l).stride[3][d_];                                 \
      r_ = q_;                                                      \
    }                                                               \
    o0 += r_ * (l).stride[0][0];                                    \
    o1 += r_ * (l).stride[1][0];                                    \
    o2 += r_ * (l).stride[2][0];                                    \
    o3 += r_ * (l).stride[3][0];                                    \
  }

// Complex numbers.
#define COMPLEX_FUNCTIONS(T, R)                                                       \
  INLINE T c_add_##T(T a, T b) { return MAKE_##T(a.x + b.x, a.y + b.y); }               \
  INLINE T c_sub_##T(T a, T b) { return MAKE_##T(a.x - b.x, a.y - b.y); }               \
  INLINE T c_mul_##T(T a, T b) { return MAKE_##T(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); } \
  INLINE T c_conj_##T(T a) { return MAKE_##T(a.x, -a.y); }                              \
  INLINE T c_div_##T(T a, T b) {                                                        \
    if (fabs(b.x) >= fabs(b.y)) {                                                     \
      R r = b.y / b.x, d = b.x + r * b.y;                                             \
      return MAKE_##T((a.x + a.y * r) / d, (a.y - a.x * r) / d);                      \
    }                                                                                 \
    R r = b.x / b.y, d = b.y + r * b.x;                                               \
    return MAKE_##T((a.x * r + a.y) / d, (a.y * r - a.x) / d);                        \
  }
COMPLEX_FUNCTIONS(c64, f32)
COMPLEX_FUNCTIONS(c128, f64)
