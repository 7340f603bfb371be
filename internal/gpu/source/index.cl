// Reading and writing of rows by indices.
//
// GATHER copies y[o, i, :] = x[o, index[i], :]: o in outer, i in count, rows of width elements, limit
// rows in x. A row out of range is zero.
#define GATHER(name, S, I)                                                                 \
  KERNEL name(OUT(S, y), IN(S, x), IN(S_##I, index), i64 outer, i64 limit, i64 count, i64 width) { \
    USE_OUT(S, y);                                                                         \
    USE_IN(S, x);                                                                          \
    USE_IN(S_##I, index);                                                                  \
    EACH1(e, outer *count *width) {                                                        \
      i64 q = e / width, c = e - q * width, o = q / count, i = q - o * count;              \
      i64 row = (i64)index[i];                                                             \
      S v = ZERO_##S;                                                                      \
      if (row >= 0 && row < limit) v = x[(o * limit + row) * width + c];                   \
      y[e] = v;                                                                            \
    }                                                                                      \
  }
// GATHERB is GATHER with batch dimensions: index is [batch, count], x is [batch, outer, limit, width].
#define GATHERB(name, S, I)                                                                \
  KERNEL name(OUT(S, y), IN(S, x), IN(S_##I, index), i64 batch, i64 outer, i64 limit, i64 count, \
              i64 width) {                                                                 \
    USE_OUT(S, y);                                                                         \
    USE_IN(S, x);                                                                          \
    USE_IN(S_##I, index);                                                                  \
    EACH1(e, batch *outer *count *width) {                                                 \
      i64 q = e / width, c = e - q * width, bo = q / count, i = q - bo * count, b = bo / outer; \
      i64 row = (i64)index[b * count + i];                                                 \
      S v = ZERO_##S;                                                                      \
      if (row >= 0 && row < limit) v = x[(bo * limit + row) * width + c];                  \
      y[e] = v;                                                                            \
    }                                                                                      \
  }
// FLATTEN turns rows of `depth` coordinates into one index of type i64; -1 where one is out of range.
#define FLATTEN(name, I)                                                                   \
  KERNEL name(OUT(i64, y), IN(S_##I, index), i64 n, i32 depth, Loop loop) {                \
    USE_OUT(i64, y);                                                                       \
    USE_IN(S_##I, index);                                                                  \
    EACH1(i, n) {                                                                          \
      i64 at = 0;                                                                          \
      int good = 1;                                                                        \
      for (int d = 0; d < depth; d++) {                                                    \
        i64 v = (i64)index[i * depth + d];                                                 \
        if (v < 0 || v >= (i64)loop.size[d]) good = 0;                                     \
        at = at * (i64)loop.size[d] + v;                                                   \
      }                                                                                    \
      y[i] = good ? at : -1;                                                               \
    }                                                                                      \
  }
// SCATTER combines rows of x into the rows of y that a sorted list names (sort.cl), in the order of
// the positions. sx is 0 if x is one element for all.
#define SCATTER(name, T, combine)                                                          \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), IN(u64, sorted), i64 rows, i64 width, i64 limit, i32 sx) { \
    typedef C_##T C;                                                                       \
    USE_OUT(S_##T, y);                                                                     \
    USE_IN(S_##T, x);                                                                      \
    USE_IN(u64, sorted);                                                                   \
    EACH1(e, rows *width) {                                                                \
      i64 r = e / width, c = e - r * width, key = (i64)(sorted[r] >> 32);                  \
      if (key < limit && (r == 0 || (i64)(sorted[r - 1] >> 32) != key)) {                  \
        C p = LD_##T(y, key * width + c);                                                  \
        for (; r < rows && (i64)(sorted[r] >> 32) == key; r++) {                           \
          C q = LD_##T(x, ((i64)(u32)sorted[r] * width + c) * sx);                         \
          p = (C)(combine);                                                                \
          if (sizeof(S_##T) == 2) { /* each result is rounded to the type, as on the CPU */ \
            ST_##T(y, key * width + c, p);                                                 \
            p = LD_##T(y, key * width + c);                                                \
          }                                                                                \
        }                                                                                  \
        ST_##T(y, key * width + c, p);                                                     \
      }                                                                                    \
    }                                                                                      \
  }
// SCATTERS copies elements of a size in bytes; the last of several for a row counts.
#define SCATTERS(name, S)                                                                  \
  KERNEL name(OUT(S, y), IN(S, x), IN(u64, sorted), i64 rows, i64 width, i64 limit, i32 sx) { \
    USE_OUT(S, y);                                                                         \
    USE_IN(S, x);                                                                          \
    USE_IN(u64, sorted);                                                                   \
    EACH1(e, rows *width) {                                                                \
      i64 r = e / width, c = e - r * width, key = (i64)(sorted[r] >> 32);                  \
      if (key < limit && (r == rows - 1 || (i64)(sorted[r + 1] >> 32) != key))             \
        y[key * width + c] = x[((i64)(u32)sorted[r] * width + c) * sx];                    \
    }                                                                                      \
  }
// COUNTS adds 1 to the element of y of each entry of a sorted list.
#define COUNTS(name)                                                                       \
  KERNEL name(OUT(i64, y), IN(u64, sorted), i64 rows, i64 limit) {                         \
    USE_OUT(i64, y);                                                                       \
    USE_IN(u64, sorted);                                                                   \
    EACH1(r, rows) {                                                                       \
      i64 key = (i64)(sorted[r] >> 32), n = 0;                                             \
      if (key < limit && (r == 0 || (i64)(sorted[r - 1] >> 32) != key)) {                  \
        for (i64 k = r; k < rows && (i64)(sorted[k] >> 32) == key; k++) n++;               \
        y[key] = n;                                                                        \
      }                                                                                    \
    }                                                                                      \
  }
// DIVIDEROWS divides row r of [n, width] by its count, or by the square root of it. A count of 0
// leaves the row.
#define DIVIDEROWS(name, T)                                                                \
  KERNEL name(OUT(S_##T, y), IN(i64, count), i64 rows, i64 width, i32 root) {              \
    typedef C_##T C;                                                                       \
    USE_OUT(S_##T, y);                                                                     \
    USE_IN(i64, count);                                                                    \
    EACH1(e, rows *width) {                                                                \
      i64 n = count[e / width];                                                            \
      if (n > 0) {                                                                         \
        C v = LD_##T(y, e);                                                                \
        ST_##T(y, e, (C)(root ? v / sqrt((C)n) : v / (C)n));                               \
      }                                                                                    \
    }                                                                                      \
  }
#define ZERO_u8 0
#define ZERO_u16 0
#define ZERO_u32 0
#define ZERO_u64 0
#define ZERO_c128 MAKE_c128(0, 0)

// kernels
GATHER(gather, SIZES > i32 i64)
GATHERB(gatherb, SIZES > i32 i64)
FLATTEN(flatten, i32 i64)
SCATTER(scatteradd, REAL, p + q)
SCATTER(scattersub, REAL, p - q)
SCATTER(scattermul, REAL, p * q)
SCATTER(scatterdiv, FLOATS, p / q)
SCATTER(scatterdiv, INTS, q == 0 ? (C)-1 : p / q)
SCATTER(scattermin, REAL, q < p ? q : p)
SCATTER(scattermax, REAL, q > p ? q : p)
SCATTERS(scatter, SIZES)
COUNTS(counts, -)
DIVIDEROWS(dividerows, FLOATS)
