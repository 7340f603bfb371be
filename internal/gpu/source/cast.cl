// Conversions between element types. A floating-point number that an integer type of 32 or 64 bits
// does not hold becomes the smallest one, as on x86; narrower types take its low bits.
#define ISF_f16 1
#define ISF_bf16 1
#define ISF_f32 1
#define ISF_f64 1
#define ISF_i8 0
#define ISF_i16 0
#define ISF_i32 0
#define ISF_i64 0
#define ISF_u8 0
#define ISF_u16 0
#define ISF_u32 0
#define ISF_u64 0
#define ISF_b8 0
#define TO_INT32(isf, v) \
  ((isf) ? ((v) >= -2147483648.f && (v) < 2147483648.f ? (i32)(v) : (i32)0x80000000) : (i32)(v))
#define TO_INT64(isf, v)                                                                      \
  ((isf) ? ((v) >= -9223372036854775808.f && (v) < 9223372036854775808.f ? (i64)(v)           \
                                                                         : (i64)1 << 63) \
         : (i64)(v))
#define TO_UINT64(isf, v)                                                                   \
  ((isf) ? ((v) < 9223372036854775808.f ? (u64)TO_INT64(1, v)                               \
                                        : (u64)TO_INT64(1, (v)-9223372036854775808.f) ^ (u64)1 << 63) \
         : (u64)(v))
#define TO_i8(isf, v) ((i8)TO_INT32(isf, v))
#define TO_u8(isf, v) ((u8)TO_INT32(isf, v))
#define TO_i16(isf, v) ((i16)TO_INT32(isf, v))
#define TO_u16(isf, v) ((u16)TO_INT32(isf, v))
#define TO_i32(isf, v) TO_INT32(isf, v)
#define TO_u32(isf, v) ((u32)TO_INT64(isf, v))
#define TO_i64(isf, v) TO_INT64(isf, v)
#define TO_u64(isf, v) TO_UINT64(isf, v)
#define TO_b8(isf, v) ((v) != 0 ? 1 : 0)
#define TO_f16(isf, v) ((f32)(v))
#define TO_bf16(isf, v) ((f32)(v))
#define TO_f32(isf, v) ((f32)(v))
#define TO_f64(isf, v) ((f64)(v))
#define TO_c64(isf, v) MAKE_c64((f32)(v), 0)
#define TO_c128(isf, v) MAKE_c128((f64)(v), 0)
#define CAST(name, A, B)                              \
  KERNEL name(OUT(S_##B, y), IN(S_##A, x), i64 n) {   \
    USE_OUT(S_##B, y);                                \
    USE_IN(S_##A, x);                                 \
    EACH(i, n) {                                      \
      C_##A v = LD_##A(x, i);                         \
      ST_##B(y, i, TO_##B(ISF_##A, v));               \
    }                                                 \
  }
// CASTC takes the real part of complex numbers, CASTCC changes their width.
#define CASTC(name, A, B, R)                          \
  KERNEL name(OUT(S_##B, y), IN(A, x), i64 n) {       \
    USE_OUT(S_##B, y);                                \
    USE_IN(A, x);                                     \
    EACH(i, n) {                                      \
      R v = x[i].x;                                   \
      ST_##B(y, i, TO_##B(1, v));                     \
    }                                                 \
  }
#define CASTCC(name, A, B, R)                         \
  KERNEL name(OUT(B, y), IN(A, x), i64 n) {           \
    USE_OUT(B, y);                                    \
    USE_IN(A, x);                                     \
    EACH(i, n) y[i] = MAKE_##B((R)x[i].x, (R)x[i].y); \
  }
// The conversion of float to bfloat16 that drops bits.
#define TRUNCATE(name, T)                         \
  KERNEL name(OUT(u16, y), IN(T, x), i64 n) {     \
    USE_OUT(u16, y);                              \
    USE_IN(T, x);                                 \
    EACH(i, n) y[i] = (u16)(BITS(x[i]) >> 16);    \
  }

// kernels
CAST(cast, REAL b8 > REAL b8 c64 c128)
CASTC(cast, c64 > REAL, f32)
CASTC(cast, c128 > REAL, f64)
CASTCC(cast, c64 > c128, f64)
CASTCC(cast, c128 > c64, f32)
TRUNCATE(truncate, f32)
