// Updates of variables by optimizers. v0 to v3 are the variable and its slots, d is the gradient, p0
// to p7 are the hyperparameters, and flag is an attribute.
//
// DENSE updates all elements. SPARSE makes NAME_rows, which updates the rows of `width` elements that a sorted list of
// indices names (sort.cl): the item at the first entry of an index applies all gradients for that
// row in the order of their positions, as the CPU does. Indices of at least `limit` are dropped.
#define VARS_1(T) OUT(S_##T, v0_)
#define VARS_2(T) VARS_1(T), OUT(S_##T, v1_)
#define VARS_3(T) VARS_2(T), OUT(S_##T, v2_)
#define VARS_4(T) VARS_3(T), OUT(S_##T, v3_)
#define USE_VARS_1(T) USE_OUT(S_##T, v0_);
#define USE_VARS_2(T) USE_VARS_1(T) USE_OUT(S_##T, v1_);
#define USE_VARS_3(T) USE_VARS_2(T) USE_OUT(S_##T, v2_);
#define USE_VARS_4(T) USE_VARS_3(T) USE_OUT(S_##T, v3_);
#define LOAD_VARS_1(T, i) C v0 = LD_##T(v0_, i);
#define LOAD_VARS_2(T, i) LOAD_VARS_1(T, i) C v1 = LD_##T(v1_, i);
#define LOAD_VARS_3(T, i) LOAD_VARS_2(T, i) C v2 = LD_##T(v2_, i);
#define LOAD_VARS_4(T, i) LOAD_VARS_3(T, i) C v3 = LD_##T(v3_, i);
#define STORE_VARS_1(T, i) ST_##T(v0_, i, v0);
#define STORE_VARS_2(T, i) STORE_VARS_1(T, i) ST_##T(v1_, i, v1);
#define STORE_VARS_3(T, i) STORE_VARS_2(T, i) ST_##T(v2_, i, v2);
#define STORE_VARS_4(T, i) STORE_VARS_3(T, i) ST_##T(v3_, i, v3);
#define HYPER_1(T) IN(S_##T, p0_)
#define HYPER_2(T) HYPER_1(T), IN(S_##T, p1_)
#define HYPER_3(T) HYPER_2(T), IN(S_##T, p2_)
#define HYPER_4(T) HYPER_3(T), IN(S_##T, p3_)
#define HYPER_5(T) HYPER_4(T), IN(S_##T, p4_)
#define HYPER_6(T) HYPER_5(T), IN(S_##T, p5_)
#define LOAD_HYPER(T, p) \
  USE_IN(S_##T, p##_);   \
  C p = LD_##T(p##_, 0);
#define LOAD_HYPER_1(T) LOAD_HYPER(T, p0)
#define LOAD_HYPER_2(T) LOAD_HYPER_1(T) LOAD_HYPER(T, p1)
#define LOAD_HYPER_3(T) LOAD_HYPER_2(T) LOAD_HYPER(T, p2)
#define LOAD_HYPER_4(T) LOAD_HYPER_3(T) LOAD_HYPER(T, p3)
#define LOAD_HYPER_5(T) LOAD_HYPER_4(T) LOAD_HYPER(T, p4)
#define LOAD_HYPER_6(T) LOAD_HYPER_5(T) LOAD_HYPER(T, p5)
#define DENSE(name, T, V, H, before, step)                                                       \
  KERNEL name(VARS_##V(T), IN(S_##T, g), HYPER_##H(T), i64 n, i32 flag) {                         \
    typedef C_##T C;                                                                              \
    USE_VARS_##V(T)                                                                               \
    USE_IN(S_##T, g);                                                                             \
    LOAD_HYPER_##H(T)                                                                             \
    before;                                                                                       \
    EACH(i, n) {                                                                                  \
      LOAD_VARS_##V(T, i)                                                                         \
      C d = LD_##T(g, i);                                                                         \
      step;                                                                                       \
      STORE_VARS_##V(T, i)                                                                        \
    }                                                                                             \
  }
#define SPARSE(name, T, V, H, before, step)                                                       \
  KERNEL name##_rows(VARS_##V(T), IN(S_##T, g), IN(u64, sorted), HYPER_##H(T), i64 rows, i64 width, \
                     i64 limit, i32 flag) {                                                       \
    typedef C_##T C;                                                                              \
    USE_VARS_##V(T)                                                                               \
    USE_IN(S_##T, g);                                                                             \
    USE_IN(u64, sorted);                                                                          \
    LOAD_HYPER_##H(T)                                                                             \
    before;                                                                                       \
    EACH1(e, rows *width) {                                                                       \
      i64 r = e / width, c = e - r * width, key = (i64)(sorted[r] >> 32);                         \
      if (key < limit && (r == 0 || (i64)(sorted[r - 1] >> 32) != key)) {                         \
        i64 i = key * width + c;                                                                  \
        LOAD_VARS_##V(T, i)                                                                       \
        for (; r < rows && (i64)(sorted[r] >> 32) == key; r++) {                                  \
          C d = LD_##T(g, (i64)(u32)sorted[r] * width + c);                                       \
          step;                                                                                   \
        }                                                                                         \
        STORE_VARS_##V(T, i)                                                                      \
      }                                                                                           \
    }                                                                                             \
  }
#define UPDATE(name, T, V, H, before, step) \
  DENSE(name, T, V, H, before, step)        \
  SPARSE(name, T, V, H, before, step)
#define SIGN(x) ((x) > 0 ? (C)1 : (x) < 0 ? (C)-1 : (x))
#define SHRINK(x, rate, l1, l2)                                      \
  (((l1) > 0 ? SIGN(x) * (fabs(x) - (rate) * (l1) > 0 ? fabs(x) - (rate) * (l1) : 0) : (x)) / \
   ((C)1 + (l2) * (rate)))
#define ADAM_RATE (p2 * sqrt((C)1 - p1) / ((C)1 - p0))
// Bits of the flag of FTRL: the linear term is multiplied by the rate; NaN spreads to the variable.
#define FTRL(lr, l1, l2, shrinkage, power)                                                        \
  C scale = flag & 1 ? (lr) : (C)1;                                                               \
  C divisor = flag & 1 ? (C)1 : (lr);                                                             \
  C next = v1 + d * d;                                                                            \
  C root = (power) == (C)-0.5 ? sqrt(next) : pow(next, -(power));                                 \
  C old = (power) == (C)-0.5 ? sqrt(v1) : pow(v1, -(power));                                      \
  v2 += (d + 2 * (shrinkage) * v0) * scale - (root - old) / divisor * v0;                         \
  C bound = (l1) * scale;                                                                         \
  v0 = 0;                                                                                         \
  if (fabs(v2) > bound) v0 = (bound * SIGN(v2) - v2) / (root / divisor + 2 * (l2) * scale);       \
  if ((flag & 2) && v2 != v2) v0 = v2;                                                            \
  v1 = next
#define NOTHING

// kernels
DENSE(gradientdescent, FLOATS, 1, 1, NOTHING, v0 -= d * p0)
UPDATE(momentum, FLOATS, 2, 2, NOTHING, v1 = v1 * p1 + d; v0 -= flag ? d * p0 + v1 * p1 * p0 : v1 * p0)
UPDATE(kerasmomentum, FLOATS, 2, 2, NOTHING, v1 = v1 * p1 - d * p0; v0 += flag ? v1 * p1 - d * p0 : v1)
UPDATE(adagrad, FLOATS, 2, 1, NOTHING, if (flag) v1 += d * d; v0 -= d * p0 / sqrt(v1))
UPDATE(adagradv2, FLOATS, 2, 2, NOTHING, if (flag) v1 += d * d; v0 -= d * p0 / (sqrt(v1) + p1))
UPDATE(adadelta, FLOATS, 3, 3, NOTHING, v1 = v1 * p1 + d * d * ((C)1 - p1); C u = sqrt(v2 + p2) / sqrt(v1 + p2) * d; v0 -= u * p0; v2 = v2 * p1 + u * u * ((C)1 - p1))
DENSE(adam, FLOATS, 3, 6, C rate = ADAM_RATE, v1 += (d - v1) * ((C)1 - p3); v2 += (d * d - v2) * ((C)1 - p4); v0 -= (flag ? v1 * p3 + d * ((C)1 - p3) : v1) * rate / (sqrt(v2) + p5))
DENSE(adamwithamsgrad, FLOATS, 4, 6, C rate = ADAM_RATE, v1 += (d - v1) * ((C)1 - p3); v2 += (d * d - v2) * ((C)1 - p4); v3 = v3 < v2 ? v2 : v3; v0 -= v1 * rate / (sqrt(v3) + p5))
DENSE(adamax, FLOATS, 3, 5, C rate = p1 / ((C)1 - p0), v1 += (d - v1) * ((C)1 - p2); v2 *= p3; v2 = v2 < fabs(d) ? fabs(d) : v2; v0 -= rate * (v1 / (v2 + p4)))
UPDATE(rmsprop, FLOATS, 3, 4, NOTHING, v1 += (d * d - v1) * ((C)1 - p1); v2 = v2 * p2 + d * p0 / sqrt(v1 + p3); v0 -= v2)
UPDATE(centeredrmsprop, FLOATS, 4, 4, NOTHING, v2 += (d * d - v2) * ((C)1 - p1); v1 += (d - v1) * ((C)1 - p1); v3 = v3 * p2 + d * p0 / sqrt(v2 - v1 * v1 + p3); v0 -= v3)
DENSE(addsign, FLOATS, 2, 4, NOTHING, v1 = v1 * p3 + d * ((C)1 - p3); v0 -= p0 * (p1 + p2 * SIGN(d) * SIGN(v1)) * d)
DENSE(powersign, FLOATS, 2, 4, NOTHING, v1 = v1 * p3 + d * ((C)1 - p3); v0 -= p0 * exp(p1 * p2 * SIGN(d) * SIGN(v1)) * d)
UPDATE(proximalgradientdescent, f32 f64, 1, 3, NOTHING, C x = v0 - d * p0; v0 = SHRINK(x, p0, p1, p2))
UPDATE(proximaladagrad, f32 f64, 2, 3, NOTHING, v1 += d * d; C rate = p0 / sqrt(v1); C x = v0 - d * rate; v0 = SHRINK(x, rate, p1, p2))
UPDATE(ftrl, FLOATS, 3, 4, NOTHING, FTRL(p0, p1, p2, (C)0, p3))
UPDATE(ftrlv2, FLOATS, 3, 5, NOTHING, FTRL(p0, p1, p2, p3, p4))
