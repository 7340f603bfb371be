// Elementwise functions of two operands, and selection.
//
// NAME has strides of 0 or 1 for its operands: an operand has all elements or one. NAME_b
// broadcasts: operand 0 of the loop is x, and operand 1 is y.
#define BINARY_OF(name, R, RC, T, expr)                                                \
  KERNEL name(OUT(S_##R, z), IN(S_##T, x), IN(S_##T, y), i64 n, i32 sx, i32 sy) {      \
    typedef C_##T C;                                                                   \
    USE_OUT(S_##R, z);                                                                 \
    USE_IN(S_##T, x);                                                                  \
    USE_IN(S_##T, y);                                                                  \
    EACH(i, n) {                                                                       \
      C a = LD_##T(x, i * sx), b = LD_##T(y, i * sy);                                  \
      ST_##R(z, i, RC(expr));                                                          \
    }                                                                                  \
  }                                                                                    \
  KERNEL name##_b(OUT(S_##R, z), IN(S_##T, x), IN(S_##T, y), i64 n, Loop loop) {       \
    typedef C_##T C;                                                                   \
    USE_OUT(S_##R, z);                                                                 \
    USE_IN(S_##T, x);                                                                  \
    USE_IN(S_##T, y);                                                                  \
    EACH1(i, n) {                                                                      \
      WALK2(loop, i)                                                                   \
      C a = LD_##T(x, o0), b = LD_##T(y, o1);                                          \
      ST_##R(z, i, RC(expr));                                                          \
    }                                                                                  \
  }
#define BINARY(name, T, expr) BINARY_OF(name, T, (C), T, expr)
#define BINARYC(name, T, expr) BINARY_OF(name, T, , T, expr)
#define COMPARE(name, T, expr) BINARY_OF(name, b8, (u8), T, (expr) ? 1 : 0)
// BINARYP has operands of one shape and a parameter p.
#define BINARYP(name, T, expr)                                               \
  KERNEL name(OUT(S_##T, z), IN(S_##T, x), IN(S_##T, y), i64 n, f32 p) {     \
    typedef C_##T C;                                                         \
    USE_OUT(S_##T, z);                                                       \
    USE_IN(S_##T, x);                                                        \
    USE_IN(S_##T, y);                                                        \
    EACH(i, n) {                                                             \
      C a = LD_##T(x, i), b = LD_##T(y, i);                                  \
      ST_##T(z, i, (C)(expr));                                               \
    }                                                                        \
  }
// SELECT copies elements of a size in bytes. The condition has stride sc; it is 0 or 1, or each
// element of the condition is for rows of so many elements.
#define SELECT(name, S)                                                                     \
  KERNEL name(OUT(S, z), IN(u8, c), IN(S, x), IN(S, y), i64 n, i64 row, i32 sc, i32 sx, i32 sy) { \
    USE_OUT(S, z);                                                                          \
    USE_IN(u8, c);                                                                          \
    USE_IN(S, x);                                                                           \
    USE_IN(S, y);                                                                           \
    EACH(i, n) z[i] = c[(row == 1 ? i : i / row) * sc] ? x[i * sx] : y[i * sy];             \
  }                                                                                         \
  KERNEL name##_b(OUT(S, z), IN(u8, c), IN(S, x), IN(S, y), i64 n, Loop loop) {             \
    USE_OUT(S, z);                                                                          \
    USE_IN(u8, c);                                                                          \
    USE_IN(S, x);                                                                           \
    USE_IN(S, y);                                                                           \
    EACH1(i, n) {                                                                           \
      WALK3(loop, i)                                                                        \
      z[i] = c[o0] ? x[o1] : y[o2];                                                         \
    }                                                                                       \
  }
#define CLIP(name, T)                                                                       \
  KERNEL name(OUT(S_##T, z), IN(S_##T, x), IN(S_##T, lo), IN(S_##T, hi), i64 n, i32 sl, i32 sh) { \
    typedef C_##T C;                                                                        \
    USE_OUT(S_##T, z);                                                                      \
    USE_IN(S_##T, x);                                                                       \
    USE_IN(S_##T, lo);                                                                      \
    USE_IN(S_##T, hi);                                                                      \
    EACH(i, n) {                                                                            \
      C v = LD_##T(x, i), l = LD_##T(lo, i * sl), h = LD_##T(hi, i * sh);                   \
      if (h < v) v = h;                                                                     \
      if (v < l) v = l;                                                                     \
      ST_##T(z, i, v);                                                                      \
    }                                                                                       \
  }
// Integer division by zero does not fault; the quotient is -1, as NVIDIA's, and the remainder x.
#define QUOTIENT(a, b) ((b) == 0 ? (C)-1 : (b) == (C)-1 && (C)-1 < 0 ? (C)(0 - (a)) : (C)((a) / (b)))
#define REMAINDER(a, b) ((b) == 0 ? (a) : (b) == (C)-1 && (C)-1 < 0 ? (C)0 : (C)((a) % (b)))
#define FLOOR_QUOTIENT(a, b) \
  (QUOTIENT(a, b) - (REMAINDER(a, b) != 0 && (b) != 0 && ((a) < 0) != ((b) < 0) ? 1 : 0))
#define FLOOR_REMAINDER(a, b) \
  (REMAINDER(a, b) + (REMAINDER(a, b) != 0 && ((a) < 0) != ((b) < 0) ? (b) : (C)0))
#define FLOOR_MOD(a, b) (fmod(a, b) + (fmod(a, b) != 0 && (fmod(a, b) < 0) != ((b) < 0) ? (b) : (C)0))
// The larger one, and NaN if one is NaN.
#define MAXIMUM(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))
#define MINIMUM(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))
#define WIDTH(a) ((C)(8 * sizeof(a)))
#define LOGISTIC(v) ((C)1 / ((C)1 + exp(-(v))))
#define POWER_FUNCTION(T)                          \
  INLINE T power_##T(T a, T b) {                   \
    T r = 1;                                       \
    if (b < 0) return a == 1 ? (T)1 : a == (T)-1 ? (T)(b & 1 ? -1 : 1) : (T)0; \
    for (; b != 0; b >>= 1, a *= a)                \
      if (b & 1) r *= a;                           \
    return r;                                      \
  }
POWER_FUNCTION(i8)
POWER_FUNCTION(i16)
POWER_FUNCTION(i32)
POWER_FUNCTION(i64)
// ROUND_T rounds a number to type T, for functions whose operands the CPU rounds.
#ifdef __OPENCL_VERSION__
INLINE float round_half(float v) {
  u16 h;
  vstore_half_rte(v, 0, (half *)&h);
  return vload_half(0, (const half *)&h);
}
#else
INLINE float round_half(float v) { return half_to_float(float_to_half(v)); }
#endif
INLINE float round_bfloat(float v) {
  return v != v ? v : FLOAT((BITS(v) + 0x7fff + (BITS(v) >> 16 & 1)) & 0xffff0000u);
}
#define ROUND_f16(v) round_half(v)
#define ROUND_bf16(v) round_bfloat(v)
#define ROUND_f32(v) (v)
#define ROUND_f64(v) (v)

// kernels
BINARY(add, REAL, a + b)
BINARY(sub, REAL, a - b)
BINARY(mul, REAL, a * b)
BINARY(div, FLOATS, a / b)
BINARY(div, INTS, QUOTIENT(a, b))
BINARY(divnonan, FLOATS, b == 0 ? (C)0 : a / b)
BINARY(mulnonan, FLOATS, b == 0 ? (C)0 : a * b)
BINARY(floordiv, FLOATS, floor(a / b))
BINARY(floordiv, SIGNED, FLOOR_QUOTIENT(a, b))
BINARY(floordiv, UNSIGNED, QUOTIENT(a, b))
BINARY(truncatediv, FLOATS, trunc(a / b))
BINARY(floormod, FLOATS, FLOOR_MOD(a, b))
BINARY(floormod, SIGNED, FLOOR_REMAINDER(a, b))
BINARY(floormod, UNSIGNED, REMAINDER(a, b))
BINARY(mod, FLOATS, fmod(a, b))
BINARY(mod, i32 i64, REMAINDER(a, b))
BINARY(max, FLOATS, MAXIMUM(a, b))
BINARY(max, INTS, a > b ? a : b)
BINARY(min, FLOATS, MINIMUM(a, b))
BINARY(min, INTS, a < b ? a : b)
BINARY(pow, FLOATS, pow(a, b))
BINARY(pow, SIGNED, power_$T(a, b))
BINARY(atan2, FLOATS, atan2(a, b))
BINARY(squareddifference, FLOATS i32 i64, (a - b) * (a - b))
BINARY(xdivy, FLOATS, a == 0 ? (C)0 : a / b)
BINARY(xlogy, FLOATS, a == 0 ? (C)0 : a * ROUND_$T(log(b)))
BINARY(xlog1py, FLOATS, a == 0 ? (C)0 : a * ROUND_$T(log1p(b)))
BINARY(nextafter, f32 f64, nextafter(a, b))
BINARY(and, INTS, a & b)
BINARY(or, INTS, a | b)
BINARY(xor, INTS, a ^ b)
BINARY(leftshift, SIGNED, b < 0 ? a : (C)((u64)a << (b >= WIDTH(a) ? WIDTH(a) - 1 : b)))
BINARY(leftshift, UNSIGNED, (C)((u64)a << (b >= WIDTH(a) ? WIDTH(a) - 1 : b)))
BINARY(rightshift, SIGNED, b < 0 ? a : a >> (b >= WIDTH(a) ? WIDTH(a) - 1 : b))
BINARY(rightshift, UNSIGNED, a >> (b >= WIDTH(a) ? WIDTH(a) - 1 : b))
BINARY(logicaland, b8, a && b)
BINARY(logicalor, b8, a || b)
BINARYC(add, c64 c128, c_add_$T(a, b))
BINARYC(sub, c64 c128, c_sub_$T(a, b))
BINARYC(mul, c64 c128, c_mul_$T(a, b))
BINARYC(div, c64 c128, c_div_$T(a, b))
BINARYC(divnonan, c64 c128, b.x == 0 && b.y == 0 ? MAKE_$T(0, 0) : c_div_$T(a, b))
BINARYC(mulnonan, c64 c128, b.x == 0 && b.y == 0 ? MAKE_$T(0, 0) : c_mul_$T(a, b))
BINARYC(squareddifference, c64 c128, c_mul_$T(c_sub_$T(a, b), c_conj_$T(c_sub_$T(a, b))))
COMPARE(equal, REAL b8, a == b)
COMPARE(notequal, REAL b8, a != b)
COMPARE(equal, c64 c128, a.x == b.x && a.y == b.y)
COMPARE(notequal, c64 c128, a.x != b.x || a.y != b.y)
COMPARE(less, REAL, a < b)
COMPARE(lessequal, REAL, a <= b)
COMPARE(greater, REAL, a > b)
COMPARE(greaterequal, REAL, a >= b)
BINARY(tanhgrad, FLOATS, b * ((C)1 - a * a))
BINARY(sigmoidgrad, FLOATS, b * a * ((C)1 - a))
BINARY(sqrtgrad, FLOATS, b == 0 ? (C)0 : b * (C)0.5 / a)
BINARY(rsqrtgrad, FLOATS, b == 0 ? (C)0 : b * (C)-0.5 * a * a * a)
BINARY(invgrad, FLOATS, b == 0 ? (C)0 : -b * a * a)
BINARY(relugrad, FLOATS, b > 0 ? a : a * 0)
BINARY(relugrad, INTS, b > 0 ? a : 0)
BINARY(relu6grad, FLOATS, b > 0 && b < 6 ? a : a * 0)
BINARY(relu6grad, INTS, b > 0 && b < 6 ? a : 0)
BINARY(elugrad, FLOATS, b < 0 ? a * (b + 1) : a)
BINARY(selugrad, FLOATS, b < 0 ? a * (b + (C)1.7580993408473768599402175208123) : a * (C)1.0507009873554804934193349852946)
BINARY(softplusgrad, FLOATS, a / (exp(-b) + 1))
BINARY(softsigngrad, FLOATS, a / ((fabs(b) + 1) * (fabs(b) + 1)))
BINARYP(leakygrad, FLOATS, b > 0 ? a : a * (C)p)
SELECT(select, u8 u16 u32 u64 c128)
CLIP(clip, FLOATS SIGNED u8 u16)
