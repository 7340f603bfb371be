// Random numbers by Philox 4x32-10 with the CPU's counters, so that they have the CPU's bits. An item
// makes the numbers of one output of the generator, which is at counter (low, high) plus its group
// times the stride of the distribution.
INLINE void philox(u32 *c, u64 key) {
  u32 k0 = (u32)key, k1 = (u32)(key >> 32);
  for (int round = 0; round < 10; round++) {
    u32 h0 = MULHI(0xD2511F53u, c[0]), l0 = 0xD2511F53u * c[0];
    u32 h1 = MULHI(0xCD9E8D57u, c[2]), l1 = 0xCD9E8D57u * c[2];
    c[0] = h1 ^ c[1] ^ k0;
    c[1] = l1;
    c[2] = h0 ^ c[3] ^ k1;
    c[3] = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}
// output sets x to the output that is `skip` after counter (low, high).
INLINE void output(u32 *x, u64 key, u64 low, u64 high, u64 skip) {
  u64 at = low + skip, up = high + (at < low ? 1 : 0);
  x[0] = (u32)at;
  x[1] = (u32)(at >> 32);
  x[2] = (u32)up;
  x[3] = (u32)(up >> 32);
  philox(x, key);
}
INLINE float unit32(u32 x) { return FLOAT(127u << 23 | (x & 0x7fffffu)) - 1.0f; }
INLINE double unit64(u32 x0, u32 x1) {
  return DOUBLE((u64)1023 << 52 | (u64)(x0 & 0xfffffu) << 32 | x1) - 1.0;
}
// The logarithm, sine and cosine of the C library whose bits the CPU's samples have.
CONSTANT double log_table[32] = {
    0x1.661ec79f8f3bep+0, -0x1.57bf7808caadep-2, 0x1.571ed4aaf883dp+0, -0x1.2bef0a7c06ddbp-2,
    0x1.49539f0f010bp+0,  -0x1.01eae7f513a67p-2, 0x1.3c995b0b80385p+0, -0x1.b31d8a68224e9p-3,
    0x1.30d190c8864a5p+0, -0x1.6574f0ac07758p-3, 0x1.25e227b0b8eap+0,  -0x1.1aa2bc79c81p-3,
    0x1.1bb4a4a1a343fp+0, -0x1.a4e76ce8c0e5ep-4, 0x1.12358f08ae5bap+0, -0x1.1973c5a611cccp-4,
    0x1.0953f419900a7p+0, -0x1.252f438e10c1ep-5, 0x1p+0,               0x0p+0,
    0x1.e608cfd9a47acp-1, 0x1.aa5aa5df25984p-5,  0x1.ca4b31f026aap-1,  0x1.c5e53aa362eb4p-4,
    0x1.b2036576afce6p-1, 0x1.526e57720db08p-3,  0x1.9c2d163a1aa2dp-1, 0x1.bc2860d22477p-3,
    0x1.886e6037841edp-1, 0x1.1058bc8a07ee1p-2,  0x1.767dcf5534862p-1, 0x1.4043057b6ee09p-2};
INLINE float log32(float x) {
  u32 b = BITS(x), t = b - 0x3f330000u;
  int part = (int)(t >> 19) & 15;
  double exponent = (double)((i32)t >> 23);
  double r = (double)FLOAT(b - (t & 0xff800000u)) * log_table[2 * part] - 1;
  double r2 = r * r;
  double y = 0x1.5575b0be00b6ap-2 * r - 0x1.ffffef20a4123p-2;
  y = y - 0x1.00ea348b88334p-2 * r2;
  return (float)(y * r2 + (log_table[2 * part + 1] + exponent * 0.693147180559945309417232121458176568 + r));
}
INLINE float poly_sin(double x) {
  double x2 = x * x, x3 = x2 * x;
  double s = x - 0x1.555545995a603p-3 * x3;
  return (float)(s + x3 * x2 * (0x1.1107605230bc4p-7 - 0x1.994eb3774cf24p-13 * x2));
}
INLINE float poly_cos(double x) {
  double x2 = x * x, x4 = x2 * x2;
  double c = 1 - 0x1.ffffffd0c621cp-2 * x2 + 0x1.55553e1068f19p-5 * x4;
  return (float)(c + x4 * x2 * (0x1.99343027bf8c3p-16 * x2 - 0x1.6c087e89a359dp-10));
}
#define HALF_PI 1.57079632679489661923132169163975144
// normals32 makes two normal numbers of two words (Box and Muller, 1958).
INLINE void normals32(float *z, u32 x0, u32 x1) {
  float u = unit32(x0);
  if (u < 1.0e-7f) u = 1.0e-7f;
  float radius = (float)sqrt((double)(-2.0f * log32(u)));
  double r = (double)(float)(6.28318530717958647692528676655900576 * (double)unit32(x1));
  int quadrant = (int)(r * (1 / HALF_PI) + 0.5);
  r -= (double)quadrant * HALF_PI;
  float s = poly_sin(r), c = poly_cos(r), t = s;
  if (quadrant == 1) { s = c; c = -t; }
  if (quadrant == 2) { s = -s; c = -c; }
  if (quadrant == 3) { s = -c; c = t; }
  z[0] = s * radius;
  z[1] = c * radius;
}
INLINE void normals_f32(float *z, u32 *x) {
  normals32(z, x[0], x[1]);
  normals32(z + 2, x[2], x[3]);
}
// The bits of float64 samples are not the CPU's: the functions are the device's.
INLINE void normals_f64(double *z, u32 *x) {
  double u = unit64(x[0], x[1]);
  if (u < 1.0e-7) u = 1.0e-7;
  double radius = sqrt(-2 * log(u)), turn = 6.28318530717958647692528676655900576 * unit64(x[2], x[3]);
  z[0] = sin(turn) * radius;
  z[1] = cos(turn) * radius;
}
// DRAW makes numbers in groups of G. make sets z[0] to z[G-1] from the output x.
#define DRAW(name, T, Z, G, make)                                             \
  KERNEL name(OUT(S_##T, y), u64 key, u64 low, u64 high, i64 n) {             \
    USE_OUT(S_##T, y);                                                        \
    EACH1(g, (n + G - 1) / G) {                                               \
      u32 x[4];                                                               \
      Z z[G];                                                                 \
      output(x, key, low, high, (u64)g);                                      \
      make;                                                                   \
      for (int k = 0; k < G; k++)                                             \
        if (g * G + k < n) ST_##T(y, g * G + k, z[k]);                        \
    }                                                                         \
  }
// TRUNCATED draws normal numbers until G are within two standard deviations. 256 words are reserved
// for each number.
#define TRUNCATED(name, T, Z, G)                                              \
  KERNEL name(OUT(S_##T, y), u64 key, u64 low, u64 high, i64 n) {             \
    USE_OUT(S_##T, y);                                                        \
    EACH1(g, (n + G - 1) / G) {                                               \
      u32 x[4];                                                               \
      Z z[4];                                                                 \
      int k = 0;                                                              \
      for (u64 tries = 0; k < G; tries++) {                                   \
        output(x, key, low, high, (u64)g * (G * 256 / 4) + tries);            \
        normals_##Z(z, x);                                                    \
        for (int j = 0; j < G && k < G; j++)                                  \
          if (z[j] > -2 && z[j] < 2) {                                        \
            if (g * G + k < n) ST_##T(y, g * G + k, z[j]);                    \
            k++;                                                              \
          }                                                                   \
      }                                                                       \
    }                                                                         \
  }
// RANGED draws integers from [lo, lo + span). FULL draws all bits.
#define RANGED(name, T, U, G)                                                 \
  KERNEL name(OUT(T, y), u64 key, u64 low, u64 high, i64 n, u64 lo, u64 span) { \
    USE_OUT(T, y);                                                            \
    EACH1(g, (n + G - 1) / G) {                                               \
      u32 x[4];                                                               \
      output(x, key, low, high, (u64)g);                                      \
      for (int k = 0; k < G; k++)                                             \
        if (g * G + k < n) y[g * G + k] = (T)((U)lo + WORD_##G(x, k) % (U)span); \
    }                                                                         \
  }
#define FULL(name, T, G)                                                      \
  KERNEL name(OUT(T, y), u64 key, u64 low, u64 high, i64 n) {                 \
    USE_OUT(T, y);                                                            \
    EACH1(g, (n + G - 1) / G) {                                               \
      u32 x[4];                                                               \
      output(x, key, low, high, (u64)g);                                      \
      for (int k = 0; k < G; k++)                                             \
        if (g * G + k < n) y[g * G + k] = (T)WORD_##G(x, k);                  \
    }                                                                         \
  }
#define WORD_4(x, k) (x)[k]
#define WORD_2(x, k) ((u64)(x)[2 * (k) + 1] << 32 | (x)[2 * (k)])
#define FOUR(f) z[0] = f(x[0]); z[1] = f(x[1]); z[2] = f(x[2]); z[3] = f(x[3])
// Units of 16-bit types: the low bits of a word become the fraction of a number in [1, 2).
INLINE float unit_half(u32 x) { return FLOAT(127u << 23 | (x & 0x3ffu) << 13) - 1.0f; }
INLINE float unit_bfloat(u32 x) { return FLOAT(127u << 23 | (x & 0x7fu) << 16) - 1.0f; }

// kernels
DRAW(uniform, f16, f32, 4, FOUR(unit_half))
DRAW(uniform, bf16, f32, 4, FOUR(unit_bfloat))
DRAW(uniform, f32, f32, 4, FOUR(unit32))
DRAW(uniform, f64, f64, 2, z[0] = unit64(x[0], x[1]); z[1] = unit64(x[2], x[3]))
DRAW(normal, f16 bf16 f32, f32, 4, normals_f32(z, x))
DRAW(normal, f64, f64, 2, normals_f64(z, x))
TRUNCATED(truncated, f16 bf16 f32, f32, 4)
TRUNCATED(truncated, f64, f64, 2)
RANGED(ranged, i32, u32, 4)
RANGED(ranged, i64, u64, 2)
FULL(full, i32 u32, 4)
FULL(full, i64 u64, 2)
