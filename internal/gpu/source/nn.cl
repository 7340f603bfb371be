// Bias, softmax, cross entropies.
//
// BIAS adds bias[c] to x[a, c, b].
#define BIAS(name, T)                                                                   \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), IN(S_##T, bias), i64 n, u32 channels, u32 inner) { \
    typedef C_##T C;                                                                    \
    USE_OUT(S_##T, y);                                                                  \
    USE_IN(S_##T, x);                                                                   \
    USE_IN(S_##T, bias);                                                                \
    EACH(i, n) {                                                                        \
      u32 q = inner == 1 ? (u32)i : (u32)i / inner;                                     \
      C v = LD_##T(x, i), w = LD_##T(bias, q % channels);                               \
      ST_##T(y, i, (C)(v + w));                                                         \
    }                                                                                   \
  }
#define GROUP 256
// FOLD reduces `mine` over the items of a group. The result is in part[0] and in every item's r.
#define FOLD(C, r, mine, combine)                      \
  part[me] = (mine);                                   \
  BARRIER();                                           \
  for (int d_ = GROUP / 2; d_ > 0; d_ /= 2) {          \
    if (me < d_) {                                     \
      C p = part[me], q = part[me + d_];               \
      part[me] = (combine);                            \
    }                                                  \
    BARRIER();                                         \
  }                                                    \
  C r = part[0];                                       \
  BARRIER();
// SOFTMAX computes softmax, or its logarithm if log is 1, of each row. A group does a row.
#define SOFTMAX(name, T)                                                                \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), i64 rows, i64 cols, i32 logs) {              \
    typedef C_##T C;                                                                    \
    USE_OUT(S_##T, y);                                                                  \
    USE_IN(S_##T, x);                                                                   \
    SHARED(C, part, GROUP);                                                             \
    int me = LOCAL_ID(0);                                                               \
    for (i64 row = GROUP_ID(0); row < rows; row += GROUPS(0)) {                         \
      i64 at = row * cols;                                                              \
      C m = -INF, s = 0;                                                                \
      for (i64 k = me; k < cols; k += GROUP) {                                          \
        C v = LD_##T(x, at + k);                                                        \
        m = v != v || v > m ? v : m;                                                    \
      }                                                                                 \
      FOLD(C, top, m, q != q || q > p ? q : p)                                          \
      for (i64 k = me; k < cols; k += GROUP) s += exp(LD_##T(x, at + k) - top);         \
      FOLD(C, sum, s, p + q)                                                            \
      C logsum = logs ? log(sum) : (C)0;                                                \
      for (i64 k = me; k < cols; k += GROUP) {                                          \
        C v = LD_##T(x, at + k) - top;                                                  \
        ST_##T(y, at + k, (C)(logs ? v - logsum : exp(v) / sum));                       \
      }                                                                                 \
    }                                                                                   \
  }
// XENT computes the cross entropy of each row, and its gradient with respect to the logits. The rows
// of logits and labels are sl and sp rows apart, 0 or 1, and their columns cl and cp, 0 or 1.
#define XENT(name, T)                                                                   \
  KERNEL name(OUT(S_##T, loss), OUT(S_##T, grad), IN(S_##T, logits), IN(S_##T, labels), i64 rows, \
              i64 cols, i64 sl, i64 cl, i64 sp, i64 cp) {                               \
    typedef C_##T C;                                                                    \
    USE_OUT(S_##T, loss);                                                               \
    USE_OUT(S_##T, grad);                                                               \
    USE_IN(S_##T, logits);                                                              \
    USE_IN(S_##T, labels);                                                              \
    SHARED(C, part, GROUP);                                                             \
    int me = LOCAL_ID(0);                                                               \
    for (i64 row = GROUP_ID(0); row < rows; row += GROUPS(0)) {                         \
      C m = -INF, s = 0, l = 0;                                                         \
      for (i64 k = me; k < cols; k += GROUP) {                                          \
        C v = LD_##T(logits, row * sl + k * cl);                                        \
        m = v != v || v > m ? v : m;                                                    \
      }                                                                                 \
      FOLD(C, top, m, q != q || q > p ? q : p)                                          \
      for (i64 k = me; k < cols; k += GROUP) s += exp(LD_##T(logits, row * sl + k * cl) - top); \
      FOLD(C, sum, s, p + q)                                                            \
      C logsum = log(sum);                                                              \
      for (i64 k = me; k < cols; k += GROUP) {                                          \
        C v = LD_##T(logits, row * sl + k * cl) - top, w = LD_##T(labels, row * sp + k * cp); \
        l += w * (logsum - v);                                                          \
        ST_##T(grad, row * cols + k, (C)(exp(v) / sum - w));                            \
      }                                                                                 \
      FOLD(C, total, l, p + q)                                                          \
      if (me == 0) ST_##T(loss, row, total);                                            \
    }                                                                                   \
  }
// SPARSEXENT is XENT with the index of the one class of each row. An index out of range gives NaN.
#define SPARSEXENT(name, T, I)                                                          \
  KERNEL name(OUT(S_##T, loss), OUT(S_##T, grad), IN(S_##T, logits), IN(S_##I, labels), i64 rows, \
              i64 cols) {                                                               \
    typedef C_##T C;                                                                    \
    USE_OUT(S_##T, loss);                                                               \
    USE_OUT(S_##T, grad);                                                               \
    USE_IN(S_##T, logits);                                                              \
    USE_IN(S_##I, labels);                                                              \
    SHARED(C, part, GROUP);                                                             \
    int me = LOCAL_ID(0);                                                               \
    for (i64 row = GROUP_ID(0); row < rows; row += GROUPS(0)) {                         \
      i64 label = (i64)labels[row];                                                     \
      int good = label >= 0 && label < cols;                                            \
      C m = -INF, s = 0;                                                                \
      for (i64 k = me; k < cols; k += GROUP) {                                          \
        C v = LD_##T(logits, row * cols + k);                                           \
        m = v != v || v > m ? v : m;                                                    \
      }                                                                                 \
      FOLD(C, top, m, q != q || q > p ? q : p)                                          \
      for (i64 k = me; k < cols; k += GROUP) s += exp(LD_##T(logits, row * cols + k) - top); \
      FOLD(C, sum, s, p + q)                                                            \
      for (i64 k = me; k < cols; k += GROUP) {                                          \
        C v = LD_##T(logits, row * cols + k) - top;                                     \
        ST_##T(grad, row * cols + k, (C)(!good ? (C)NAN_ : exp(v) / sum - (k == label ? 1 : 0))); \
        if (k == label) ST_##T(loss, row, (C)(log(sum) - v));                           \
      }                                                                                 \
      if (me == 0 && !good) ST_##T(loss, row, (C)NAN_);                                 \
    }                                                                                   \
  }

// kernels
BIAS(bias, REAL)
SOFTMAX(softmax, FLOATS)
XENT(xent, FLOATS)
SPARSEXENT(sparsexent, FLOATS > i32 i64)
