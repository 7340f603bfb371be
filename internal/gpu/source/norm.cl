// Batch normalization over [rows, channels], and local response normalization.
//
// COLS sums a term over the rows for each channel, in float. A group of 32 x 8 items sums 32 columns,
// or one of `splits` parts of them; the output is [splits, channels], divided by `count` if that is
// positive.
#define COLS(name, T, term)                                                               \
  KERNEL name(OUT(f32, y), IN(S_##T, x), IN(S_##T, g), IN(f32, mean), IN(f32, scale), i64 rows, \
              i64 channels, i32 splits, i64 count) {                                      \
    USE_OUT(f32, y);                                                                      \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(S_##T, g);                                                                     \
    USE_IN(f32, mean);                                                                    \
    USE_IN(f32, scale);                                                                   \
    SHARED(f32, part, 256);                                                               \
    int lx = LOCAL_ID(0), ly = LOCAL_ID(1);                                               \
    i64 chunk = (rows + splits - 1) / splits, across = (channels + 31) / 32;              \
    for (i64 group = GROUP_ID(0); group < splits * across; group += GROUPS(0)) {          \
      i64 split = group / across, c = (group - split * across) * 32 + lx;                 \
      i64 lo = split * chunk, hi = lo + chunk < rows ? lo + chunk : rows;                 \
      f32 s = 0;                                                                          \
      if (c < channels) {                                                                 \
        f32 m = mean[c], r = scale[c];                                                    \
        for (i64 k = lo + ly; k < hi; k += 8) {                                           \
          f32 v = LD_##T(x, k * channels + c), d = LD_##T(g, k * channels + c);           \
          s += (term);                                                                    \
        }                                                                                 \
      }                                                                                   \
      part[ly * 32 + lx] = s;                                                             \
      BARRIER();                                                                          \
      for (int d = 4; d > 0; d /= 2) {                                                    \
        if (ly < d) part[ly * 32 + lx] += part[(ly + d) * 32 + lx];                       \
        BARRIER();                                                                        \
      }                                                                                   \
      if (ly == 0 && c < channels)                                                        \
        y[split * channels + c] = count > 0 ? part[lx] / (f32)count : part[lx];           \
      BARRIER();                                                                          \
    }                                                                                     \
  }
// NORMALIZE is y = (x - mean) / sqrt(variance + epsilon) * scale + offset.
#define NORMALIZE(name, T)                                                                \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), IN(f32, mean), IN(f32, variance), IN(f32, scale), \
              IN(f32, offset), i64 n, u32 channels, f32 epsilon, i32 relu) {              \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(f32, mean);                                                                    \
    USE_IN(f32, variance);                                                                \
    USE_IN(f32, scale);                                                                   \
    USE_IN(f32, offset);                                                                  \
    EACH(i, n) {                                                                          \
      u32 c = (u32)(i % channels);                                                        \
      f32 v = (LD_##T(x, i) - mean[c]) * (1 / sqrt(variance[c] + epsilon) * scale[c]) + offset[c]; \
      ST_##T(y, i, relu && v < 0 ? 0 : v);                                                \
    }                                                                                     \
  }
// NORMGRAD is the gradient with respect to x. sums are those of g and of g * (x - mean) over rows;
// with frozen statistics they do not matter.
#define NORMGRAD(name, T)                                                                 \
  KERNEL name(OUT(S_##T, y), IN(S_##T, g), IN(S_##T, x), IN(f32, mean), IN(f32, variance), \
              IN(f32, scale), IN(f32, sum), IN(f32, dot), i64 n, u32 channels, i64 rows, f32 epsilon, \
              i32 frozen) {                                                               \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, g);                                                                     \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(f32, mean);                                                                    \
    USE_IN(f32, variance);                                                                \
    USE_IN(f32, scale);                                                                   \
    USE_IN(f32, sum);                                                                     \
    USE_IN(f32, dot);                                                                     \
    EACH(i, n) {                                                                          \
      u32 c = (u32)(i % channels);                                                        \
      f32 r = 1 / sqrt(variance[c] + epsilon), d = LD_##T(g, i);                          \
      if (!frozen)                                                                        \
        d -= sum[c] / (f32)rows + (LD_##T(x, i) - mean[c]) * r * r * (dot[c] / (f32)rows); \
      ST_##T(y, i, d * (scale[c] * r));                                                   \
    }                                                                                     \
  }
// NORMSTEP does what follows from the sums per channel. what: 0 is the variance times `factor`; 1 is
// the running value, x * (1 - factor) + y * factor; 2 is x / sqrt(y + factor).
#define NORMSTEP(name)                                                                    \
  KERNEL name(OUT(f32, z), IN(f32, x), IN(f32, y), i64 n, f32 factor, i32 what) {         \
    USE_OUT(f32, z);                                                                      \
    USE_IN(f32, x);                                                                       \
    USE_IN(f32, y);                                                                       \
    EACH(i, n) z[i] = what == 0 ? x[i] * factor                                           \
                      : what == 1 ? x[i] * (1 - factor) + y[i] * factor                   \
                                  : x[i] / sqrt(y[i] + factor);                           \
  }
// CHANNEL is i % channels. Divisions of 32 bits take a fraction of the time of those of 64 bits.
#define CHANNEL(i, n, channels) \
  ((n) <= 0x7fffffff ? (i32)((u32)(i) % (u32)(channels)) : (i32)((i) % (channels)))
// LRN divides each element by norm ^ beta. norm is bias + alpha * the sum of the squares of the
// 2 * radius + 1 channels around it. The gradient reads it from memory.
#define LRN(name, T)                                                                      \
  INLINE f32 name##_norm(GLOBAL const S_##T *x, i64 i, i32 c, i32 channels, i32 radius, f32 bias, f32 alpha) { \
    f32 s = 0;                                                                            \
    for (i32 k = c - radius; k <= c + radius; k++)                                        \
      if (k >= 0 && k < channels) {                                                       \
        f32 v = LD_##T(x, i - c + k);                                                     \
        s += v * v;                                                                       \
      }                                                                                   \
    return bias + alpha * s;                                                              \
  }                                                                                       \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), i64 n, i32 channels, i32 radius, f32 bias, f32 alpha, f32 beta) { \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    EACH1(i, n) {                                                                         \
      i32 c = CHANNEL(i, n, channels);                                                    \
      ST_##T(y, i, LD_##T(x, i) * pow(name##_norm(x, i, c, channels, radius, bias, alpha), -beta)); \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_norms(OUT(f32, norm), IN(S_##T, x), i64 n, i32 channels, i32 radius, f32 bias, f32 alpha, \
                      f32 beta) {                                                         \
    USE_OUT(f32, norm);                                                                   \
    USE_IN(S_##T, x);                                                                     \
    EACH1(i, n) norm[i] = name##_norm(x, i, CHANNEL(i, n, channels), channels, radius, bias, alpha); \
  }                                                                                       \
  KERNEL name##_grad(OUT(S_##T, z), IN(S_##T, g), IN(S_##T, x), IN(S_##T, y), IN(f32, norm), i64 n, \
                     i32 channels, i32 radius, f32 bias, f32 alpha, f32 beta) {           \
    USE_OUT(S_##T, z);                                                                    \
    USE_IN(S_##T, g);                                                                     \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(S_##T, y);                                                                     \
    USE_IN(f32, norm);                                                                    \
    EACH1(i, n) {                                                                         \
      i32 c = CHANNEL(i, n, channels);                                                    \
      f32 own = LD_##T(x, i), d = 0;                                                      \
      for (i32 j = c - radius; j <= c + radius; j++)                                      \
        if (j >= 0 && j < channels) {                                                     \
          i64 at = i - c + j;                                                             \
          f32 gj = LD_##T(g, at);                                                         \
          d += -2 * alpha * beta * own * LD_##T(y, at) / norm[at] * gj;                   \
          if (j == c) d += pow(norm[at], -beta) * gj;                                     \
        }                                                                                 \
      ST_##T(z, i, d);                                                                    \
    }                                                                                     \
  }

// kernels
COLS(colsum, f16 bf16 f32, v)
COLS(colsquares, f16 bf16 f32, (v - m) * (v - m))
COLS(coldot, f16 bf16 f32, d * (v - m) * r)
NORMALIZE(normalize, f16 bf16 f32)
NORMGRAD(normgrad, f16 bf16 f32)
NORMSTEP(normstep, -)
LRN(lrn, f16 bf16 f32)
