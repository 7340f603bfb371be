// Reductions of [a, r, b] to [a, b], with fixed trees: the bits of a result do not depend on timing.
//
// NAME_rows is for b = 1: a group of GROUP items reduces a row, or one of `splits` parts of it.
// NAME_cols is for b > 1: a group of 32 x 8 items reduces 32 columns. With several splits the output
// is [a, splits, b] of the computing type C, else it is of the element type and divided by `count`
// unless that is negative.
#define GROUP 256
#define REDUCE(name, T, init, term, combine)                                               \
  KERNEL name##_rows(OUT(S_##T, y), IN(S_##T, x), i64 a, i64 r, i32 splits, i64 count) {   \
    typedef C_##T C;                                                                       \
    USE_OUT(S_##T, y);                                                                     \
    GLOBAL C *partial = (GLOBAL C *)y;                                                     \
    USE_IN(S_##T, x);                                                                      \
    SHARED(C, part, GROUP);                                                                \
    int me = LOCAL_ID(0);                                                                  \
    i64 chunk = (r + splits - 1) / splits;                                                 \
    for (i64 g = GROUP_ID(0); g < a * splits; g += GROUPS(0)) {                            \
      i64 row = g / splits, lo = (g - row * splits) * chunk;                               \
      i64 hi = lo + chunk < r ? lo + chunk : r;                                            \
      C s = (C)(init);                                                                     \
      for (i64 k = lo + me; k < hi; k += GROUP) {                                          \
        C v = LD_##T(x, row * r + k);                                                      \
        C p = s, q = (C)(term);                                                            \
        s = (C)(combine);                                                                  \
      }                                                                                    \
      part[me] = s;                                                                        \
      BARRIER();                                                                           \
      for (int d = GROUP / 2; d > 0; d /= 2) {                                             \
        if (me < d) {                                                                      \
          C p = part[me], q = part[me + d];                                                \
          part[me] = (C)(combine);                                                         \
        }                                                                                  \
        BARRIER();                                                                         \
      }                                                                                    \
      if (me == 0) {                                                                       \
        s = part[0];                                                                       \
        if (splits > 1) {                                                                  \
          partial[g] = s;                                                                  \
        } else {                                                                           \
          DIVIDE(T, s, count)                                                              \
          ST_##T(y, g, s);                                                                 \
        }                                                                                  \
      }                                                                                    \
      BARRIER();                                                                           \
    }                                                                                      \
  }                                                                                        \
  KERNEL name##_cols(OUT(S_##T, y), IN(S_##T, x), i64 a, i64 r, i64 b, i32 splits, i64 count) { \
    typedef C_##T C;                                                                       \
    USE_OUT(S_##T, y);                                                                     \
    GLOBAL C *partial = (GLOBAL C *)y;                                                     \
    USE_IN(S_##T, x);                                                                      \
    SHARED(C, part, GROUP);                                                                \
    int lx = LOCAL_ID(0), ly = LOCAL_ID(1);                                                \
    i64 chunk = (r + splits - 1) / splits, across = (b + 31) / 32;                         \
    for (i64 g = GROUP_ID(0); g < a * splits * across; g += GROUPS(0)) {                   \
      i64 up = g / across, c = (g - up * across) * 32 + lx;                                \
      i64 row = up / splits, lo = (up - row * splits) * chunk;                             \
      i64 hi = lo + chunk < r ? lo + chunk : r;                                            \
      C s = (C)(init);                                                                     \
      if (c < b)                                                                           \
        for (i64 k = lo + ly; k < hi; k += 8) {                                            \
          C v = LD_##T(x, (row * r + k) * b + c);                                          \
          C p = s, q = (C)(term);                                                          \
          s = (C)(combine);                                                                \
        }                                                                                  \
      part[ly * 32 + lx] = s;                                                              \
      BARRIER();                                                                           \
      for (int d = 4; d > 0; d /= 2) {                                                     \
        if (ly < d) {                                                                      \
          C p = part[ly * 32 + lx], q = part[(ly + d) * 32 + lx];                          \
          part[ly * 32 + lx] = (C)(combine);                                               \
        }                                                                                  \
        BARRIER();                                                                         \
      }                                                                                    \
      if (ly == 0 && c < b) {                                                              \
        s = part[lx];                                                                      \
        if (splits > 1) {                                                                  \
          partial[up * b + c] = s;                                                         \
        } else {                                                                           \
          DIVIDE(T, s, count)                                                              \
          ST_##T(y, up * b + c, s);                                                        \
        }                                                                                  \
      }                                                                                    \
      BARRIER();                                                                           \
    }                                                                                      \
  }
#define DIVIDE(T, s, count) \
  if (count > 0 || (count == 0 && ISF_##T)) s = (C_##T)(s / (C_##T)count);
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
#define LOWEST_f16 (-INF)
#define LOWEST_bf16 (-INF)
#define LOWEST_f32 (-INF)
#define LOWEST_f64 (-INF)
#define LOWEST_i8 (-128)
#define LOWEST_i16 (-32768)
#define LOWEST_i32 ((i32)0x80000000)
#define LOWEST_i64 ((i64)1 << 63)
#define LOWEST_u8 0
#define LOWEST_u16 0
#define LOWEST_u32 0
#define LOWEST_u64 0
#define HIGHEST_f16 INF
#define HIGHEST_bf16 INF
#define HIGHEST_f32 INF
#define HIGHEST_f64 INF
#define HIGHEST_i8 127
#define HIGHEST_i16 32767
#define HIGHEST_i32 0x7fffffff
#define HIGHEST_i64 0x7fffffffffffffff
#define HIGHEST_u8 255
#define HIGHEST_u16 65535
#define HIGHEST_u32 0xffffffffu
#define HIGHEST_u64 (~(u64)0)
// ARG finds the first position of the largest or smallest element of [a, r, b] along r. NaN counts
// only if there is nothing else.
// NAME_rows has a group per output, NAME_cols an item.
#define ARG(name, T, O, better)                                                            \
  KERNEL name##_rows(OUT(O, y), IN(S_##T, x), i64 a, i64 r, i64 b) {                       \
    typedef C_##T C;                                                                       \
    USE_OUT(O, y);                                                                         \
    USE_IN(S_##T, x);                                                                      \
    SHARED(C, value, GROUP);                                                               \
    SHARED(i64, place, GROUP);                                                             \
    int me = LOCAL_ID(0);                                                                  \
    for (i64 g = GROUP_ID(0); g < a * b; g += GROUPS(0)) {                                 \
      i64 base = g / b * r * b + g % b, at = -1;                                           \
      C p = 0;                                                                             \
      for (i64 k = me; k < r; k += GROUP) {                                                \
        C q = LD_##T(x, base + k * b);                                                     \
        if (at < 0 || (better) || (p != p && q == q)) {                                                          \
          p = q;                                                                           \
          at = k;                                                                          \
        }                                                                                  \
      }                                                                                    \
      value[me] = p;                                                                       \
      place[me] = at;                                                                      \
      BARRIER();                                                                           \
      for (int d = GROUP / 2; d > 0; d /= 2) {                                             \
        if (me < d && place[me + d] >= 0) {                                                \
          p = value[me];                                                                   \
          C q = value[me + d];                                                             \
          i64 i = place[me], j = place[me + d];                                            \
          if (i < 0 || (better) || (p != p && q == q) || (p == q && j < i)) {                                    \
            value[me] = q;                                                                 \
            place[me] = j;                                                                 \
          }                                                                                \
        }                                                                                  \
        BARRIER();                                                                         \
      }                                                                                    \
      if (me == 0) y[g] = (O)place[0];                                                     \
      BARRIER();                                                                           \
    }                                                                                      \
  }                                                                                        \
  KERNEL name##_cols(OUT(O, y), IN(S_##T, x), i64 a, i64 r, i64 b) {                       \
    typedef C_##T C;                                                                       \
    USE_OUT(O, y);                                                                         \
    USE_IN(S_##T, x);                                                                      \
    EACH1(g, a *b) {                                                                       \
      i64 base = g / b * r * b + g % b, at = 0;                                            \
      C p = LD_##T(x, base);                                                               \
      for (i64 k = 1; k < r; k++) {                                                        \
        C q = LD_##T(x, base + k * b);                                                     \
        if ((better) || (p != p && q == q)) {                                              \
          p = q;                                                                           \
          at = k;                                                                          \
        }                                                                                  \
      }                                                                                    \
      y[g] = (O)at;                                                                        \
    }                                                                                      \
  }
// SCAN computes running results along r of [a, r, b]. NAME_rows has a group per lane and carries
// the result of each block of GROUP elements on; NAME_cols has an item per lane.
#define SCAN(name, T, init, combine)                                                       \
  KERNEL name##_rows(OUT(S_##T, y), IN(S_##T, x), i64 a, i64 r, i64 b, i32 exclusive, i32 reverse) { \
    typedef C_##T C;                                                                       \
    USE_OUT(S_##T, y);                                                                     \
    USE_IN(S_##T, x);                                                                      \
    SHARED(C, part, 2 * GROUP);                                                            \
    int me = LOCAL_ID(0);                                                                  \
    for (i64 g = GROUP_ID(0); g < a * b; g += GROUPS(0)) {                                 \
      i64 base = g / b * r * b + g % b;                                                    \
      C carry = (C)(init);                                                                 \
      for (i64 k0 = 0; k0 < r; k0 += GROUP) {                                              \
        i64 k = k0 + me, at = base + (reverse ? r - 1 - k : k) * b;                        \
        C mine = k < r ? LD_##T(x, at) : (C)(init);                                        \
        int from = 0;                                                                      \
        part[me] = mine;                                                                   \
        BARRIER();                                                                         \
        for (int d = 1; d < GROUP; d *= 2) {                                               \
          C q = part[from + me];                                                           \
          if (me >= d) {                                                                   \
            C p = part[from + me - d];                                                     \
            q = (C)(combine);                                                              \
          }                                                                                \
          from = GROUP - from;                                                             \
          part[from + me] = q;                                                             \
          BARRIER();                                                                       \
        }                                                                                  \
        C p = carry, q = part[from + me];                                                  \
        if (exclusive) q = me == 0 ? (C)(init) : part[from + me - 1];                      \
        q = (C)(combine);                                                                  \
        if (k < r) ST_##T(y, at, q);                                                       \
        q = part[from + GROUP - 1];                                                        \
        carry = (C)(combine);                                                              \
        BARRIER();                                                                         \
      }                                                                                    \
    }                                                                                      \
  }                                                                                        \
  KERNEL name##_cols(OUT(S_##T, y), IN(S_##T, x), i64 a, i64 r, i64 b, i32 exclusive, i32 reverse) { \
    typedef C_##T C;                                                                       \
    USE_OUT(S_##T, y);                                                                     \
    USE_IN(S_##T, x);                                                                      \
    EACH1(g, a *b) {                                                                       \
      i64 base = g / b * r * b + g % b;                                                    \
      C p = (C)(init);                                                                     \
      for (i64 k = 0; k < r; k++) {                                                        \
        i64 at = base + (reverse ? r - 1 - k : k) * b;                                     \
        C q = LD_##T(x, at);                                                               \
        C next = (C)(combine);                                                             \
        ST_##T(y, at, exclusive ? p : next);                                               \
        p = next;                                                                          \
      }                                                                                    \
    }                                                                                      \
  }

// kernels
REDUCE(sum, REAL, 0, v, p + q)
REDUCE(sumsquares, FLOATS, 0, v * v, p + q)
REDUCE(prod, REAL, 1, v, p * q)
REDUCE(max, FLOATS, LOWEST_$T, v, q != q || q > p ? q : p)
REDUCE(max, INTS, LOWEST_$T, v, q > p ? q : p)
REDUCE(min, FLOATS, HIGHEST_$T, v, q != q || q < p ? q : p)
REDUCE(min, INTS, HIGHEST_$T, v, q < p ? q : p)
REDUCE(all, b8, 1, v, p && q)
REDUCE(any, b8, 0, v, p || q)
ARG(argmax, REAL b8 > i32 i64, q > p)
ARG(argmin, REAL b8 > i32 i64, q < p)
SCAN(cumsum, REAL, 0, p + q)
SCAN(cumprod, REAL, 1, p * q)
