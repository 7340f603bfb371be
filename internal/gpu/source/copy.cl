// Copies of elements by their size in bytes: everything that moves elements without computing.
//
// STRIDED copies element by element along a loop: operand 0 is y, operand 1 is x. The offsets y0 and
// x0 are added, so that strides may be negative.
#define STRIDED(name, S)                                                              \
  KERNEL name(OUT(S, y), IN(S, x), i64 n, i64 y0, i64 x0, Loop loop) {                \
    USE_OUT(S, y);                                                                    \
    USE_IN(S, x);                                                                     \
    EACH1(i, n) {                                                                     \
      WALK2(loop, i)                                                                  \
      y[y0 + o0] = x[x0 + o1];                                                        \
    }                                                                                 \
  }
// ROWS copies rows of n elements: row r goes from x0 + r * sx to y0 + r * sy. Group 1 is the row.
#define ROWS(name, S)                                                                 \
  KERNEL name(OUT(S, y), IN(S, x), i64 rows, i64 n, i64 y0, i64 sy, i64 x0, i64 sx) { \
    USE_OUT(S, y);                                                                    \
    USE_IN(S, x);                                                                     \
    for (i64 r = GROUP_ID(1); r < rows; r += GROUPS(1)) {                             \
      i64 to = y0 + r * sy, from = x0 + r * sx;                                       \
      EACH(i, n) y[to + i] = x[from + i];                                             \
    }                                                                                 \
  }
// TRANSPOSE swaps the two last dimensions of [batch, rows, cols]. A group of 32 x 8 items moves a
// square of 32 x 32 elements through shared memory, so that both sides are accessed in rows.
#define SQUARE 32
#define TRANSPOSE(name, S)                                                            \
  KERNEL name(OUT(S, y), IN(S, x), i64 batch, i64 rows, i64 cols) {                   \
    USE_OUT(S, y);                                                                    \
    USE_IN(S, x);                                                                     \
    SHARED(S, square, SQUARE * (SQUARE + 1));                                         \
    int lx = LOCAL_ID(0), ly = LOCAL_ID(1);                                           \
    i64 across = (cols + SQUARE - 1) / SQUARE, down = (rows + SQUARE - 1) / SQUARE;   \
    for (i64 t = GROUP_ID(0); t < batch * across * down; t += GROUPS(0)) {            \
      i64 b = t / (across * down), in = t - b * across * down;                        \
      i64 r0 = in / across * SQUARE, c0 = in % across * SQUARE;                       \
      for (int k = ly; k < SQUARE; k += 8)                                            \
        if (r0 + k < rows && c0 + lx < cols)                                          \
          square[k * (SQUARE + 1) + lx] = x[(b * rows + r0 + k) * cols + c0 + lx];    \
      BARRIER();                                                                      \
      for (int k = ly; k < SQUARE; k += 8)                                            \
        if (c0 + k < cols && r0 + lx < rows)                                          \
          y[(b * cols + c0 + k) * rows + r0 + lx] = square[lx * (SQUARE + 1) + k];    \
      BARRIER();                                                                      \
    }                                                                                 \
  }
// FILL sets all elements to the element at x.
#define FILL(name, S)                                                                 \
  KERNEL name(OUT(S, y), IN(S, x), i64 n) {                                           \
    USE_OUT(S, y);                                                                    \
    USE_IN(S, x);                                                                     \
    S v = x[0];                                                                       \
    EACH(i, n) y[i] = v;                                                              \
  }
// FILLBITS sets all elements to the low bits of v.
#define FILLBITS(name, S)                                                             \
  KERNEL name(OUT(S, y), i64 n, u64 v) {                                              \
    USE_OUT(S, y);                                                                    \
    EACH(i, n) y[i] = (S)v;                                                           \
  }
#define FILLPAIR(name, S)                                                             \
  KERNEL name(OUT(S, y), i64 n, u64 v, u64 w) {                                       \
    USE_OUT(S, y);                                                                    \
    EACH(i, n) y[i] = MAKE_##S(DOUBLE(v), DOUBLE(w));                                 \
  }
// MIRROR pads by reflection. The loop is over y; stride 0 is that of x, stride 1 the size of x in
// the dimension, stride 2 the padding before it. edge is 1 if the border itself is repeated.
#define MIRROR(name, S)                                                               \
  KERNEL name(OUT(S, y), IN(S, x), i64 n, i32 edge, Loop loop) {                      \
    USE_OUT(S, y);                                                                    \
    USE_IN(S, x);                                                                     \
    EACH1(i, n) {                                                                     \
      u32 r = (u32)i;                                                                 \
      i64 from = 0;                                                                   \
      for (int d = (int)loop.rank - 1; d >= 0; d--) {                                 \
        u32 q = r / loop.size[d];                                                     \
        i64 c = (i64)(r - q * loop.size[d]) - loop.stride[2][d], m = loop.stride[1][d]; \
        if (c < 0) c = -c - edge;                                                     \
        if (c >= m) c = 2 * m - 2 - c + edge;                                         \
        from += c * loop.stride[0][d];                                                \
        r = q;                                                                        \
      }                                                                               \
      y[i] = x[from];                                                                 \
    }                                                                                 \
  }
// ONEHOT fills [outer, depth, inner] with on where the index of [outer, inner] is the position in
// depth, and with off elsewhere.
#define ONEHOT(name, S, I)                                                            \
  KERNEL name(OUT(S, y), IN(S_##I, index), IN(S, on), IN(S, off), i64 n, i64 depth, i64 inner) { \
    USE_OUT(S, y);                                                                    \
    USE_IN(S_##I, index);                                                             \
    USE_IN(S, on);                                                                    \
    USE_IN(S, off);                                                                   \
    EACH1(i, n) {                                                                     \
      i64 q = i / inner, o = q / depth, d = q - o * depth;                            \
      y[i] = (i64)index[o * inner + (i - q * inner)] == d ? on[0] : off[0];           \
    }                                                                                 \
  }
// REVERSESEQ reverses the first elements along a dimension of `steps` elements, as many as `lengths`
// has for the position in another dimension. The strides are those of the two dimensions.
#define REVERSESEQ(name, S, I)                                                        \
  KERNEL name(OUT(S, y), IN(S, x), IN(S_##I, lengths), i64 n, i64 steps, i64 stride, i64 batch, i64 batch_stride) { \
    USE_OUT(S, y);                                                                    \
    USE_IN(S, x);                                                                     \
    USE_IN(S_##I, lengths);                                                           \
    EACH1(i, n) {                                                                     \
      i64 t = i / stride % steps, length = (i64)lengths[i / batch_stride % batch];    \
      if (length > steps) length = steps;                                             \
      y[i] = x[t < length ? i + (length - 1 - 2 * t) * stride : i];                   \
    }                                                                                 \
  }
// BAND keeps the band of matrices of rows x cols, and sets the rest to zero. A negative bound keeps
// all.
#define BAND(name, S)                                                                 \
  KERNEL name(OUT(S, y), IN(S, x), i64 n, i64 rows, i64 cols, i64 lower, i64 upper) { \
    USE_OUT(S, y);                                                                    \
    USE_IN(S, x);                                                                     \
    EACH1(i, n) {                                                                     \
      i64 q = i / cols, c = i - q * cols, r = q % rows;                               \
      S v = x[i];                                                                     \
      if (!((lower < 0 || r - c <= lower) && (upper < 0 || c - r <= upper))) v = ZERO_##S; \
      y[i] = v;                                                                       \
    }                                                                                 \
  }
#define ZERO_u8 0
#define ZERO_u16 0
#define ZERO_u32 0
#define ZERO_u64 0
#define ZERO_c128 MAKE_c128(0, 0)
// RANGE is start + i * delta.
#define RANGE(name, T)                                                                \
  KERNEL name(OUT(S_##T, y), i64 n, C_##T start, C_##T delta) {                       \
    USE_OUT(S_##T, y);                                                                \
    EACH(i, n) y[i] = start + (C_##T)i * delta;                                       \
  }

// kernels
STRIDED(strided, SIZES)
ROWS(rows, SIZES)
TRANSPOSE(transpose, SIZES)
FILL(fill, SIZES)
FILLBITS(fillbits, u8 u16 u32 u64)
FILLPAIR(fillbits, c128)
MIRROR(mirror, SIZES)
ONEHOT(onehot, SIZES > i32 i64 u8)
REVERSESEQ(reverseseq, SIZES > i32 i64)
BAND(band, SIZES)
RANGE(range, f32 f64 i32 i64)
