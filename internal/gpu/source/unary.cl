// Elementwise functions of one operand.
#define UNARY(name, T, expr)                        \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), i64 n) { \
    typedef C_##T C;                                \
    USE_OUT(S_##T, y);                              \
    USE_IN(S_##T, x);                               \
    EACH(i, n) {                                    \
      C v = LD_##T(x, i);                           \
      ST_##T(y, i, (C)(expr));                      \
    }                                               \
  }
// UNARYP has a parameter p.
#define UNARYP(name, T, expr)                              \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), i64 n, f32 p) { \
    typedef C_##T C;                                       \
    USE_OUT(S_##T, y);                                     \
    USE_IN(S_##T, x);                                      \
    EACH(i, n) {                                           \
      C v = LD_##T(x, i);                                  \
      ST_##T(y, i, (C)(expr));                             \
    }                                                      \
  }
// UNARYC is for complex types, whose values cannot be cast.
#define UNARYC(name, T, expr)                       \
  KERNEL name(OUT(T, y), IN(T, x), i64 n) {         \
    USE_OUT(T, y);                                  \
    USE_IN(T, x);                                   \
    EACH(i, n) {                                    \
      T v = x[i];                                   \
      y[i] = (expr);                                \
    }                                               \
  }
// PREDICATE returns a boolean, and PART a value of another type.
#define PREDICATE(name, T, expr)                \
  KERNEL name(OUT(u8, y), IN(S_##T, x), i64 n) { \
    typedef C_##T C;                            \
    USE_OUT(u8, y);                             \
    USE_IN(S_##T, x);                           \
    EACH(i, n) {                                \
      C v = LD_##T(x, i);                       \
      y[i] = (expr) ? 1 : 0;                    \
    }                                           \
  }
#define PART(name, T, R, expr)                 \
  KERNEL name(OUT(R, y), IN(S_##T, x), i64 n) { \
    USE_OUT(R, y);                             \
    USE_IN(S_##T, x);                          \
    EACH(i, n) {                               \
      S_##T v = x[i];                          \
      y[i] = (R)(expr);                        \
    }                                          \
  }
// COMPLEX makes complex numbers of two real operands.
#define COMPLEX(name, R, T)                                  \
  KERNEL name(OUT(T, z), IN(R, x), IN(R, y), i64 n) {        \
    USE_OUT(T, z);                                           \
    USE_IN(R, x);                                            \
    USE_IN(R, y);                                            \
    EACH(i, n) z[i] = MAKE_##T(x[i], y[i]);                  \
  }
// The logistic function, the derivative of softplus. Large negative values stay accurate.
#define LOGISTIC(v) ((C)1 / ((C)1 + exp(-(v))))
#define SOFTPLUS(v, threshold) \
  ((v) > -(threshold) ? (v) : (v) < (threshold) ? exp(v) : log1p(exp(v)))
#define MASK_i8 0xffu
#define MASK_u8 0xffu
#define MASK_i16 0xffffu
#define MASK_u16 0xffffu
#define MASK_i32 0xffffffffu
#define MASK_u32 0xffffffffu
#define SIGN(v) ((v) > 0 ? 1 : (v) < 0 ? -1 : 0)

// kernels
UNARY(neg, FLOATS SIGNED, -v)
UNARY(abs, FLOATS, fabs(v))
UNARY(abs, SIGNED, v < 0 ? -v : v)
UNARY(sign, FLOATS, v != v ? v : SIGN(v))
UNARY(sign, SIGNED, SIGN(v))
UNARY(square, FLOATS INTS, v * v)
UNARY(sqrt, FLOATS, sqrt(v))
UNARY(rsqrt, FLOATS, (C)1 / sqrt(v))
UNARY(inv, FLOATS, (C)1 / v)
UNARY(inv, SIGNED, v == 1 || v == -1 ? v : 0)
UNARY(exp, FLOATS, exp(v))
UNARY(expm1, FLOATS, expm1(v))
UNARY(log, FLOATS, log(v))
UNARY(log1p, FLOATS, log1p(v))
UNARY(sin, FLOATS, sin(v))
UNARY(cos, FLOATS, cos(v))
UNARY(tan, FLOATS, tan(v))
UNARY(asin, FLOATS, asin(v))
UNARY(acos, FLOATS, acos(v))
UNARY(atan, FLOATS, atan(v))
UNARY(sinh, FLOATS, sinh(v))
UNARY(cosh, FLOATS, cosh(v))
UNARY(tanh, FLOATS, tanh(v))
UNARY(asinh, FLOATS, asinh(v))
UNARY(acosh, FLOATS, acosh(v))
UNARY(atanh, FLOATS, atanh(v))
UNARY(erf, FLOATS, erf(v))
UNARY(erfc, FLOATS, erfc(v))
UNARY(lgamma, FLOATS, lgamma(v))
UNARY(floor, FLOATS, floor(v))
UNARY(ceil, FLOATS, ceil(v))
UNARY(rint, FLOATS, rint(v))
UNARY(sigmoid, FLOATS, LOGISTIC(v))
UNARY(relu, FLOATS, v < 0 ? (C)0 : v)
UNARY(relu, SIGNED, v < 0 ? 0 : v)
UNARY(relu6, FLOATS, v < 0 ? (C)0 : v > 6 ? (C)6 : v)
UNARY(relu6, SIGNED, v < 0 ? 0 : v > 6 ? 6 : v)
UNARY(relu6, UNSIGNED, v > 6 ? 6 : v)
UNARY(elu, FLOATS, v < 0 ? expm1(v) : v)
UNARY(selu, FLOATS, v < 0 ? (C)1.7580993408473768599402175208123 * expm1(v) : (C)1.0507009873554804934193349852946 * v)
UNARYP(leaky, FLOATS, v > 0 ? v : v * (C)p)
UNARY(softplus, f16, SOFTPLUS(v, -7.0109134f))
UNARY(softplus, bf16, SOFTPLUS(v, -2.8520303f))
UNARY(softplus, f32, SOFTPLUS(v, -13.942385f))
UNARY(softplus, f64, SOFTPLUS(v, -34.04365338911715))
UNARY(softsign, FLOATS, v / (fabs(v) + 1))
UNARY(invert, INTS, ~v)
UNARY(not, b8, !v)
UNARYC(neg, c64 c128, MAKE_$T(-v.x, -v.y))
UNARYC(conj, c64 c128, c_conj_$T(v))
UNARYC(square, c64 c128, c_mul_$T(v, v))
UNARYC(inv, c64 c128, c_div_$T(MAKE_$T(1, 0), v))
PREDICATE(isnan, FLOATS, v != v)
PREDICATE(isinf, FLOATS, fabs(v) == INF)
PREDICATE(isfinite, FLOATS, fabs(v) < INF)
PART(real, c64, f32, v.x)
PART(imag, c64, f32, v.y)
PART(abs, c64, f32, hypot(v.x, v.y))
PART(angle, c64, f32, atan2(v.y, v.x))
PART(real, c128, f64, v.x)
PART(imag, c128, f64, v.y)
PART(abs, c128, f64, hypot(v.x, v.y))
PART(angle, c128, f64, atan2(v.y, v.x))
PART(popcount, i8 i16 i32 u8 u16 u32, u8, POPCOUNT((u32)v & MASK_$T))
PART(popcount, i64 u64, u8, POPCOUNT((u64)v))
COMPLEX(complex, f32 > c64)
COMPLEX(complex, f64 > c128)
