// Sorting of keys of 64 bits: an index in the high half and its position in the low half. All keys
// differ, so the order is fixed, and equal indices stay in the order of their positions.
//
// The network is Batcher's bitonic sort over a power of two. A group of 256 items sorts blocks of
// BLOCK keys in shared memory; steps over longer distances run one by one.
#define BLOCK 1024
// KEYS makes n keys of indices, and pads with the largest key. Indices outside of [0, limit) become
// limit.
#define KEYS(name, T)                                                            \
  KERNEL name(OUT(u64, y), IN(S_##T, index), i64 n, i64 padded, i64 limit) {     \
    USE_OUT(u64, y);                                                             \
    USE_IN(S_##T, index);                                                        \
    EACH(i, padded) {                                                            \
      u64 key = ~(u64)0;                                                         \
      if (i < n) {                                                               \
        i64 v = (i64)index[i];                                                   \
        key = (u64)(v >= 0 && v < limit ? v : limit) << 32 | (u64)i;             \
      }                                                                          \
      y[i] = key;                                                                \
    }                                                                            \
  }
// SORTBLOCKS runs the steps of stages from to to (powers of two) that stay within blocks. The keys
// are rows of `row` keys (a power of two), each sorted for itself. Rows are shorter than a block or
// fill whole blocks, so the last block has whole rows, but it may have fewer of them.
#define SORTBLOCKS(name)                                                         \
  KERNEL name(OUT(u64, y), i64 n, i64 from, i64 to, i64 row) {                   \
    USE_OUT(u64, y);                                                             \
    SHARED(u64, part, BLOCK);                                                    \
    int me = LOCAL_ID(0);                                                        \
    for (i64 base = GROUP_ID(0) * (i64)BLOCK; base < n; base += GROUPS(0) * (i64)BLOCK) {\
      int count = n - base < BLOCK ? (int)(n - base) : BLOCK;                    \
      for (int e = me; e < count; e += 256) part[e] = y[base + e];               \
      BARRIER();                                                                 \
      for (i64 stage = from; stage <= to; stage *= 2) {                          \
        for (int d = stage / 2 < count / 2 ? (int)(stage / 2) : count / 2; d > 0; d /= 2) {\
          for (int e = me; e < count / 2; e += 256) {                            \
            int i = (e / d) * 2 * d + e % d;                                     \
            u64 p = part[i], q = part[i + d];                                    \
            int up = ((base + i) & (row - 1) & stage) == 0;                      \
            if ((p > q) == up) {                                                 \
              part[i] = q;                                                       \
              part[i + d] = p;                                                   \
            }                                                                    \
          }                                                                      \
          BARRIER();                                                             \
        }                                                                        \
      }                                                                          \
      for (int e = me; e < count; e += 256) y[base + e] = part[e];               \
      BARRIER();                                                                 \
    }                                                                            \
  }
#define SORTSTEP(name)                                                           \
  KERNEL name(OUT(u64, y), i64 n, i64 stage, i64 d, i64 row) {                   \
    USE_OUT(u64, y);                                                             \
    EACH(e, n / 2) {                                                             \
      i64 i = (e / d) * 2 * d + e % d;                                           \
      u64 p = y[i], q = y[i + d];                                                \
      int up = (i & (row - 1) & stage) == 0;                                     \
      if ((p > q) == up) {                                                       \
        y[i] = q;                                                                \
        y[i + d] = p;                                                            \
      }                                                                          \
    }                                                                            \
  }
// TOPKEYS makes a row of `padded` keys of each row of n elements, largest element first: the
// inverted bits of an integer of the same order, and the position. Name_values takes the first k
// elements of each sorted row.
#define TOPKEYS(name, T)                                                         \
  KERNEL name(OUT(u64, y), IN(S_##T, x), i64 rows, i64 n, i64 padded) {          \
    USE_OUT(u64, y);                                                             \
    USE_IN(S_##T, x);                                                            \
    EACH1(i, rows * padded) {                                                    \
      i64 r = i / padded, c = i - r * padded;                                    \
      y[i] = c < n ? (u64)~ORDER_##T(LD_##T(x, r * n + c)) << 32 | (u64)c : ~(u64)0; \
    }                                                                            \
  }                                                                              \
  KERNEL name##_values(OUT(S_##T, y), OUT(i32, at), IN(u64, keys), IN(S_##T, x), i64 rows, i64 n, i64 padded, i64 k) { \
    USE_OUT(S_##T, y);                                                           \
    USE_OUT(i32, at);                                                            \
    USE_IN(u64, keys);                                                           \
    USE_IN(S_##T, x);                                                            \
    EACH1(i, rows * k) {                                                         \
      i64 r = i / k, j = i - r * k;                                              \
      u32 c = (u32)keys[r * padded + j];                                         \
      at[i] = (i32)c;                                                            \
      y[i] = x[r * n + c];                                                       \
    }                                                                            \
  }
// order_float returns an integer in the order of the number. Both zeros are equal.
INLINE u32 order_float(f32 v) {
  u32 b = BITS(v + 0.0f);
  return b ^ ((u32)((i32)b >> 31) | 0x80000000u);
}
#define ORDER_f16 order_float
#define ORDER_bf16 order_float
#define ORDER_f32 order_float
#define ORDER_i8(v) ((u32)(i32)(v) ^ 0x80000000u)
#define ORDER_i16 ORDER_i8
#define ORDER_i32 ORDER_i8
#define ORDER_u8(v) ((u32)(v))
#define ORDER_u16 ORDER_u8
#define ORDER_u32 ORDER_u8

// kernels
KEYS(keys, i32 i64)
SORTBLOCKS(sortblocks, -)
SORTSTEP(sortstep, -)
TOPKEYS(topkeys, f16 bf16 f32 i8 i16 i32 u8 u16 u32)
