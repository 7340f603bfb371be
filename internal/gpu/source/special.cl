// Functions of mathematical physics. As on the CPU, all types compute in double precision, by the
// methods of package special.
#define UNARY(name, T, expr)                        \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), i64 n) { \
    USE_OUT(S_##T, y);                              \
    USE_IN(S_##T, x);                               \
    EACH1(i, n) {                                   \
      f64 v = (f64)LD_##T(x, i);                    \
      ST_##T(y, i, (C_##T)(expr));                  \
    }                                               \
  }
#define BINARY(name, T, expr)                                                     \
  KERNEL name(OUT(S_##T, z), IN(S_##T, x), IN(S_##T, y), i64 n, i32 sx, i32 sy) { \
    USE_OUT(S_##T, z);                                                            \
    USE_IN(S_##T, x);                                                             \
    USE_IN(S_##T, y);                                                             \
    EACH1(i, n) {                                                                 \
      f64 a = (f64)LD_##T(x, i * sx), b = (f64)LD_##T(y, i * sy);                 \
      ST_##T(z, i, (C_##T)(expr));                                                \
    }                                                                             \
  }                                                                               \
  KERNEL name##_b(OUT(S_##T, z), IN(S_##T, x), IN(S_##T, y), i64 n, Loop loop) {  \
    USE_OUT(S_##T, z);                                                            \
    USE_IN(S_##T, x);                                                             \
    USE_IN(S_##T, y);                                                             \
    EACH1(i, n) {                                                                 \
      WALK2(loop, i)                                                              \
      f64 a = (f64)LD_##T(x, o0), b = (f64)LD_##T(y, o1);                         \
      ST_##T(z, i, (C_##T)(expr));                                                \
    }                                                                             \
  }
#define PI 3.14159265358979323846264338327950288
#define EULER 0.57721566490153286061
// The inverse of the error function: algorithm AS 241 of M. J. Wichura (Applied Statistics 37, 1988),
// as in Go's package math.
INLINE f64 inverse_erf(f64 x) {
  f64 v = fabs(x), r, p, q;
  if (!(v < 1)) return v == 1 ? x * (f64)INF : (f64)NAN_;
  if (v <= 0.85) {
    r = 0.180625 - 0.25 * v * v;
    p = 8.8709406962545514830200e2;
    p = p * r + 1.1819493347062294404278e4;
    p = p * r + 2.3782041382114385731252e4;
    p = p * r + 1.6235862515167575384252e4;
    p = p * r + 4.8548868893843886794648e3;
    p = p * r + 6.9706266534389598238465e2;
    p = p * r + 4.7072688112383978012285e1;
    p = p * r + 1.1975323115670912564578e0;
    q = 5.2264952788528545610e3;
    q = q * r + 2.8729085735721942674e4;
    q = q * r + 3.9307895800092710610e4;
    q = q * r + 2.1213794301586595867e4;
    q = q * r + 5.3941960214247511077e3;
    q = q * r + 6.8718700749205790830e2;
    q = q * r + 4.2313330701600911252e1;
    q = q * r + 1.0000000000000000000e0;
    p *= v;
  } else if ((r = sqrt(0.693147180559945309417232121458176568 - log(1.0 - v))) <= 5) {
    r -= 1.6;
    p = 7.74545014278341407640e-4;
    p = p * r + 2.27238449892691845833e-2;
    p = p * r + 2.41780725177450611770e-1;
    p = p * r + 1.27045825245236838258e0;
    p = p * r + 3.64784832476320460504e0;
    p = p * r + 5.76949722146069140550e0;
    p = p * r + 4.63033784615654529590e0;
    p = p * r + 1.42343711074968357734e0;
    q = 1.4859850019840355905497876e-9;
    q = q * r + 7.7441459065157709165577218e-4;
    q = q * r + 2.1494160384252876777097297e-2;
    q = q * r + 2.0945065210512749128288442e-1;
    q = q * r + 9.7547832001787427186894837e-1;
    q = q * r + 2.3707661626024532365971225e0;
    q = q * r + 2.9036514445419946173133295e0;
    q = q * r + 1.4142135623730950488016887e0;
  } else {
    r -= 5.0;
    p = 2.01033439929228813265e-7;
    p = p * r + 2.71155556874348757815e-5;
    p = p * r + 1.24266094738807843860e-3;
    p = p * r + 2.65321895265761230930e-2;
    p = p * r + 2.96560571828504891230e-1;
    p = p * r + 1.78482653991729133580e0;
    p = p * r + 5.46378491116411436990e0;
    p = p * r + 6.65790464350110377720e0;
    q = 2.891024605872965461538222e-15;
    q = q * r + 2.010321207683943062279931e-7;
    q = q * r + 2.611088405080593625138020e-5;
    q = q * r + 1.112800997078859844711555e-3;
    q = q * r + 2.103693768272068968719679e-2;
    q = q * r + 1.936480946950659106176712e-1;
    q = q * r + 8.482908416595164588112026e-1;
    q = q * r + 1.414213562373095048801689e0;
  }
  p /= q;
  return x < 0 ? -p : p;
}
INLINE f64 digamma_of(f64 x) {
  if (x <= 0 && x == floor(x)) return (f64)NAN_;
  f64 value = 0;
  if (x < 0) {
    value = -PI / tan(PI * (x - round(x)));
    x = 1 - x;
  }
  NO_UNROLL
  for (; x < 12; x++) value -= 1 / x;
  f64 q = 1 / (x * x), tail = q * (1.0 / 12);
  tail = q * (691.0 / 32760 - tail);
  tail = q * (1.0 / 132 - tail);
  tail = q * (1.0 / 240 - tail);
  tail = q * (1.0 / 252 - tail);
  tail = q * (1.0 / 120 - tail);
  tail = q * (1.0 / 12 - tail);
  return value + log(x) - 1 / (2 * x) - tail;
}
// The modified Bessel functions of the first kind of order 0 or 1. From arguments of 30 on, the
// expansion has double precision.
INLINE f64 bessel_i_series(f64 x, f64 order) {
  f64 q = x * x / 4, term = order == 1 ? x / 2 : 1, sum = term;
  NO_UNROLL
  for (f64 k = 1; k < 200; k++) {
    term *= q / (k * (k + order));
    sum += term;
    if (term <= 1e-17 * sum) break;
  }
  return sum;
}
INLINE f64 bessel_i_expansion(f64 x, f64 order) {
  if (x == (f64)INF) return 0;
  f64 term = 1, sum = 1;
  NO_UNROLL
  for (f64 k = 1; k < 40; k++) {
    f64 next = -term * (4 * order * order - (2 * k - 1) * (2 * k - 1)) / (k * 8 * x);
    if (fabs(next) > fabs(term)) break;
    term = next;
    sum += term;
    if (fabs(term) < 1e-17) break;
  }
  return sum / sqrt(2 * PI * x);
}
// bessel_i returns the function, times e^-|x| if it is scaled.
INLINE f64 bessel_i(f64 x, int order, int scaled) {
  f64 y = fabs(x), value;
  if (y < 30) {
    value = bessel_i_series(y, order);
    if (scaled) value *= exp(-y);
  } else {
    value = bessel_i_expansion(y, order);
    if (!scaled) value *= exp(y);
  }
  return order == 1 ? copysign(value, x) : value;
}
// bessel_k returns the modified Bessel function of the second kind, times e^x if it is scaled.
INLINE f64 bessel_k(f64 x, int order, int scaled) {
  if (x != x) return x;
  if (x <= 0) return (f64)INF;
  if (x == (f64)INF) return 0;
  if (x > 1e16) return scaled ? sqrt(PI / (2 * x)) : 0.0;
  if (x <= 2) {
    f64 q = x * x / 4, l = log(x / 2), term = 1, harmonic = 0;
    f64 k0 = -(l + EULER) * bessel_i_series(x, 0);
    f64 k1 = 1 / x + l * bessel_i_series(x, 1) - x / 4 * (1 - 2 * EULER);
    NO_UNROLL
    for (f64 k = 1; k < 60; k++) {
      term *= q / (k * k);
      harmonic += 1 / k;
      k0 += term * harmonic;
      k1 -= x / 4 * term / (k + 1) * (2 * harmonic + 1 / (k + 1) - 2 * EULER);
      if (term * harmonic < 1e-18) break;
    }
    return (order == 0 ? k0 : k1) * (scaled ? exp(x) : 1.0);
  }
  f64 b = 2 * (1 + x), d = 1 / b, h = d, delta = d, q1 = 0, q2 = 1, q = 0.25, c = 0.25, a = -0.25, s = 1 + q * delta;
  NO_UNROLL
  for (f64 i = 2; i < 10000; i++) {
    a -= 2 * (i - 1);
    c = -a * c / i;
    f64 next = (q1 - b * q2) / a;
    q1 = q2;
    q2 = next;
    q += c * next;
    b += 2;
    d = 1 / (b + a * d);
    delta = (b * d - 1) * delta;
    h += delta;
    f64 ds = q * delta;
    s += ds;
    if (fabs(ds / s) < 1e-17) break;
  }
  h *= 0.25;
  f64 value = sqrt(PI / (2 * x)) / s;
  if (order == 1) value = value * (x + 0.5 - h) / x;
  return scaled ? value : value * exp(-x);
}
// Dawson's integral by Rybicki's sum over samples that are 0.2 apart.
INLINE f64 dawson(f64 x) {
  f64 y = fabs(x), q = x * x;
  if (y < 0.2)
    return x * (1 - 2.0 / 3 * q * (1 - .4 * q * (1 - 2.0 / 7 * q * (1 - 2.0 / 9 * q * (1 - 2.0 / 11 * q * (1 - 2.0 / 13 * q))))));
  if (y == (f64)INF) return 0 / x;
  if (y > 1e4) return 1 / (2 * x);
  f64 middle = 2 * round(y / 0.4), sum = 0;
  NO_UNROLL
  for (int k = -41; k <= 41; k += 2) {
    f64 at = middle + k, d = y - at * 0.2;
    sum += exp(-d * d) / at;
  }
  return copysign(sum / sqrt(PI), x);
}
// The exponential integral Ei.
INLINE f64 exponential_integral(f64 x) {
  if (x == 0) return -(f64)INF;
  if (!(x > 0) || x == (f64)INF) return (f64)NAN_;
  if (x < 40) {
    f64 term = 1, sum = 0;
    NO_UNROLL
    for (f64 k = 1; k < 300; k++) {
      term *= x / k;
      sum += term / k;
      if (term / k < 1e-17 * sum) break;
    }
    return EULER + log(x) + sum;
  }
  f64 term = 1, sum = 1;
  NO_UNROLL
  for (f64 k = 1; k < 60; k++) {
    f64 next = term * k / x;
    if (next > term || next < 1e-17) break;
    term = next;
    sum += term;
  }
  return exp(x) / x * sum;
}
// The Hurwitz zeta function by the summation formula of Euler and Maclaurin, as in Cephes.
CONSTANT f64 zeta_coefficients[12] = {
    12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.307674368e12 / 691, 7.47242496e10, -1.067062284288e16 / 3617,
    5.109094217170944e18 / 43867, -8.028576626982912e20 / 174611, 1.5511210043330985984e23 / 854513, -1.6938241367317436694528e27 / 236364091};
INLINE f64 zeta_near(f64 x, f64 q) { // q is at least -100
  const f64 epsilon = 1.11022302462515654042e-16;
  if (q > 1e8) return (1 / (x - 1) + 1 / (2 * q)) * pow(q, 1 - x);
  f64 s = pow(q, -x), a = q, b = 0;
  NO_UNROLL
  for (int i = 0; i < 9 || a <= 9; i++) {
    a += 1;
    b = pow(a, -x);
    s += b;
    if (fabs(b / s) < epsilon) return s;
  }
  f64 w = a, k = 0;
  s += b * w / (x - 1);
  s -= 0.5 * b;
  a = 1;
  NO_UNROLL
  for (int i = 0; i < 12; i++) {
    a *= x + k;
    b /= w;
    f64 t = a * b / zeta_coefficients[i];
    s += t;
    if (fabs(t / s) < epsilon) return s;
    k += 1;
    a *= x + k;
    b /= w;
    k += 1;
  }
  return s;
}
INLINE f64 zeta_of(f64 x, f64 q) {
  if (x == 1) return (f64)INF;
  if (!(x > 1)) return (f64)NAN_;
  if (q <= 0) {
    if (q == floor(q)) return x == floor(x) && fmod(x, 2.0) == 0 ? (f64)INF : (f64)NAN_;
    if (x != floor(x)) return (f64)NAN_;
  }
  if (!(q < -100)) return zeta_near(x, q);
  // The terms before the first positive base f are powers of -(1-f), -(2-f), up to -(m-f).
  f64 m = ceil(-q), f = q + m;
  f64 negative = zeta_near(x, 1 - f) - zeta_near(x, m + 1 - f);
  return zeta_near(x, f) + (fmod(x, 2.0) == 0 ? negative : -negative);
}
INLINE f64 polygamma_of(f64 n, f64 x) {
  if (n != floor(n) || n < 0) return (f64)NAN_;
  if (n == 0) return digamma_of(x);
  f64 value = tgamma(n + 1) * zeta_of(n + 1, x);
  return fmod(n, 2.0) == 0 ? -value : value;
}

// kernels
UNARY(digamma, f16 f32 f64, digamma_of(v))
UNARY(besseli0, f16 f32 f64, bessel_i(v, 0, 0))
UNARY(besseli0e, f16 f32 f64, bessel_i(v, 0, 1))
UNARY(besseli1, f16 f32 f64, bessel_i(v, 1, 0))
UNARY(besseli1e, f16 f32 f64, bessel_i(v, 1, 1))
UNARY(besselk0, f16 f32 f64, bessel_k(v, 0, 0))
UNARY(besselk0e, f16 f32 f64, bessel_k(v, 0, 1))
UNARY(besselk1, f16 f32 f64, bessel_k(v, 1, 0))
UNARY(besselk1e, f16 f32 f64, bessel_k(v, 1, 1))
UNARY(dawsn, f32 f64, dawson(v))
UNARY(erfinv, f32 f64, inverse_erf(v))
UNARY(expint, f32 f64, exponential_integral(v))
UNARY(ndtri, f32 f64, -1.41421356237309504880168872420969808 * inverse_erf(1 - 2 * v))
BINARY(polygamma, f32 f64, polygamma_of(a, b))
BINARY(zeta, f32 f64, zeta_of(a, b))
