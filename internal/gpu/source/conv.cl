// Convolutions, over up to three spatial dimensions. The layout is [batch, positions, channels].
typedef struct {
  i32 batch, channels;
  i32 in[3], k[3], out[3], stride[3], dilation[3], pad[3];
  i32 nchw, multiplier; // channels come before positions; outputs per channel of depthwise ones
} Window;
#define SPREAD(w, p, size, a) \
  i32 a##2 = (p) % (w).size[2], a##1 = (p) / (w).size[2] % (w).size[1], a##0 = (p) / (w).size[2] / (w).size[1]
// The position in the input for position o of the output and k of the filter, in dimension d.
#define AT(w, o, k, d) ((o) * (w).stride[d] + (k) * (w).dilation[d] - (w).pad[d])
#define VOLUME(a) ((a)[0] * (a)[1] * (a)[2])
// The place of channel c at position p of image b, with a given number of positions and channels.
#define PLACE(w, b, p, positions, c, channels) \
  ((w).nchw ? ((i64)(b) * (channels) + (c)) * (positions) + (p) : ((i64)(b) * (positions) + (p)) * (channels) + (c))

// IM2COL makes a row [kernel positions, channels] of each output position from first on.
#define IM2COL(name, S)                                                                   \
  KERNEL name(OUT(S, y), IN(S, x), i64 n, i64 first, Window w) {                          \
    USE_OUT(S, y);                                                                        \
    USE_IN(S, x);                                                                         \
    i32 kernels = VOLUME(w.k), outs = VOLUME(w.out);                                      \
    EACH1(e, n) {                                                                         \
      i64 q = e / w.channels;                                                             \
      i32 c = (i32)(e - q * w.channels);                                                  \
      i64 pixel = q / kernels + first;                                                    \
      i32 kp = (i32)(q % kernels), b = (i32)(pixel / outs), op = (i32)(pixel % outs);     \
      SPREAD(w, kp, k, f);                                                                \
      SPREAD(w, op, out, o);                                                              \
      i32 i0 = AT(w, o0, f0, 0), i1 = AT(w, o1, f1, 1), i2 = AT(w, o2, f2, 2);            \
      S v = ZERO_##S;                                                                     \
      if (i0 >= 0 && i0 < w.in[0] && i1 >= 0 && i1 < w.in[1] && i2 >= 0 && i2 < w.in[2])  \
        v = x[((((i64)b * w.in[0] + i0) * w.in[1] + i1) * w.in[2] + i2) * w.channels + c]; \
      y[e] = v;                                                                           \
    }                                                                                     \
  }
#define ZERO_u16 0
#define ZERO_u32 0
#define ZERO_u64 0
// FOR_WINDOWS visits the pairs of an output position (o0, o1, o2) and a kernel position (f0, f1, f2)
// in which input position (i0, i1, i2) takes part.
#define FOR_WINDOWS(w)                                                                    \
  for (i32 f0 = 0; f0 < w.k[0]; f0++)                                                     \
    for (i32 f1 = 0; f1 < w.k[1]; f1++)                                                   \
      for (i32 f2 = 0; f2 < w.k[2]; f2++) {                                               \
        i32 t0 = i0 + w.pad[0] - f0 * w.dilation[0], o0 = t0 / w.stride[0];               \
        i32 t1 = i1 + w.pad[1] - f1 * w.dilation[1], o1 = t1 / w.stride[1];               \
        i32 t2 = i2 + w.pad[2] - f2 * w.dilation[2], o2 = t2 / w.stride[2];               \
        if (t0 < 0 || t1 < 0 || t2 < 0 || o0 >= w.out[0] || o1 >= w.out[1] || o2 >= w.out[2] || \
            t0 != o0 * w.stride[0] || t1 != o1 * w.stride[1] || t2 != o2 * w.stride[2])   \
          continue;
// COL2IM sums the rows of im2col's layout into the images: the transposed copy.
#define COL2IM(name, T)                                                                   \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), i64 n, Window w) {                             \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    i32 kernels = VOLUME(w.k), outs = VOLUME(w.out), ins = VOLUME(w.in);                  \
    EACH1(e, n) {                                                                         \
      i64 q = e / w.channels;                                                             \
      i32 c = (i32)(e - q * w.channels), b = (i32)(q / ins), ip = (i32)(q % ins);         \
      SPREAD(w, ip, in, i);                                                               \
      C s = 0;                                                                            \
      FOR_WINDOWS(w)                                                                      \
        i64 row = (i64)b * outs + (o0 * w.out[1] + o1) * w.out[2] + o2;                   \
        s += LD_##T(x, (row * kernels + (f0 * w.k[1] + f1) * w.k[2] + f2) * w.channels + c); \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  }
// DEPTHWISE convolves each channel with `multiplier` filters: filter is [kernel, channel, multiplier].
#define DEPTHWISE(name, T)                                                                \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), IN(S_##T, filter), i64 n, Window w) {          \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(S_##T, filter);                                                                \
    i32 outs = VOLUME(w.out), wide = w.channels * w.multiplier;                           \
    EACH1(e, n) {                                                                         \
      i64 q = e / wide;                                                                   \
      i32 m = (i32)(e - q * wide), c = m / w.multiplier, b = (i32)(q / outs), op = (i32)(q % outs); \
      SPREAD(w, op, out, o);                                                              \
      C s = 0;                                                                            \
      for (i32 f1 = 0; f1 < w.k[1]; f1++)                                                 \
        for (i32 f2 = 0; f2 < w.k[2]; f2++) {                                             \
          i32 i1 = AT(w, o1, f1, 1), i2 = AT(w, o2, f2, 2);                               \
          if (i1 >= 0 && i1 < w.in[1] && i2 >= 0 && i2 < w.in[2])                         \
            s = FMA(LD_##T(x, (((i64)b * w.in[1] + i1) * w.in[2] + i2) * w.channels + c), \
                    LD_##T(filter, (i64)(f1 * w.k[2] + f2) * wide + m), s);               \
        }                                                                                 \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_input(OUT(S_##T, y), IN(S_##T, g), IN(S_##T, filter), i64 n, Window w) {  \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, g);                                                                     \
    USE_IN(S_##T, filter);                                                                \
    i32 ins = VOLUME(w.in), outs = VOLUME(w.out), wide = w.channels * w.multiplier;       \
    EACH1(e, n) {                                                                         \
      i64 q = e / w.channels;                                                             \
      i32 c = (i32)(e - q * w.channels), b = (i32)(q / ins), ip = (i32)(q % ins);         \
      SPREAD(w, ip, in, i);                                                               \
      C s = 0;                                                                            \
      FOR_WINDOWS(w)                                                                      \
        i64 row = (i64)b * outs + (o0 * w.out[1] + o1) * w.out[2] + o2;                   \
        for (i32 m = c * w.multiplier; m < (c + 1) * w.multiplier; m++)                   \
          s = FMA(LD_##T(g, row * wide + m), LD_##T(filter, (i64)(f1 * w.k[2] + f2) * wide + m), s); \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  }                                                                                       \
  /* A group sums over all positions for one element of the filter. */                    \
  KERNEL name##_filter(OUT(S_##T, y), IN(S_##T, x), IN(S_##T, g), i64 n, Window w) {      \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(S_##T, g);                                                                     \
    SHARED(C, part, GROUP);                                                               \
    int me = LOCAL_ID(0);                                                                 \
    i32 outs = VOLUME(w.out), wide = w.channels * w.multiplier;                           \
    for (i64 e = GROUP_ID(0); e < n; e += GROUPS(0)) {                                    \
      i32 kp = (i32)(e / wide), m = (i32)(e % wide), c = m / w.multiplier;                \
      SPREAD(w, kp, k, f);                                                                \
      C s = 0;                                                                            \
      for (i64 row = me; row < (i64)w.batch * outs; row += GROUP) {                       \
        i32 b = (i32)(row / outs), op = (i32)(row % outs);                                \
        SPREAD(w, op, out, o);                                                            \
        i32 i1 = AT(w, o1, f1, 1), i2 = AT(w, o2, f2, 2);                                 \
        if (i1 >= 0 && i1 < w.in[1] && i2 >= 0 && i2 < w.in[2])                           \
          s = FMA(LD_##T(x, (((i64)b * w.in[1] + i1) * w.in[2] + i2) * w.channels + c),   \
                  LD_##T(g, row * wide + m), s);                                          \
      }                                                                                   \
      part[me] = s;                                                                       \
      BARRIER();                                                                          \
      for (int d = GROUP / 2; d > 0; d /= 2) {                                            \
        if (me < d) part[me] += part[me + d];                                             \
        BARRIER();                                                                        \
      }                                                                                   \
      if (me == 0) ST_##T(y, e, part[0]);                                                 \
      BARRIER();                                                                          \
    }                                                                                     \
  }
#define GROUP 256
// Pooling. The mean of a window counts its elements, and not the padding. The grad forms visit the
// input, whose element collects the gradients of the windows that it is in.
// POSITION declares the channel c, the position p and the image b of element e of n. Divisions of 32
// bits take a fraction of the time of those of 64 bits.
#define POSITION(w, e, n, positions, p)                                                   \
  i32 c, p, b;                                                                            \
  if ((n) <= 0x7fffffff) {                                                                \
    u32 inner = (u32)(w.nchw ? (positions) : w.channels), outer = (u32)(w.nchw ? w.channels : (positions)); \
    u32 rest = (u32)(e) / inner, first = (u32)(e) - rest * inner, image = rest / outer;   \
    rest -= image * outer;                                                                \
    b = (i32)image;                                                                       \
    c = (i32)(w.nchw ? rest : first);                                                     \
    p = (i32)(w.nchw ? first : rest);                                                     \
  } else {                                                                                \
    c = (i32)(w.nchw ? (e) / (positions) % w.channels : (e) % w.channels);                \
    p = (i32)(w.nchw ? (e) % (positions) : (e) / w.channels % (positions));               \
    b = (i32)((e) / (positions) / w.channels);                                            \
  }
#define OVER_OUTPUTS(n, w)                                                                \
  i32 ins = VOLUME(w.in), outs = VOLUME(w.out);                                           \
  EACH1(e, n) {                                                                           \
    POSITION(w, e, n, outs, op);                                                          \
    SPREAD(w, op, out, o);
#define OVER_INPUTS(n, w)                                                                 \
  i32 ins = VOLUME(w.in), outs = VOLUME(w.out);                                           \
  EACH1(e, n) {                                                                           \
    POSITION(w, e, n, ins, ip);                                                           \
    SPREAD(w, ip, in, i);
#define FOR_INPUTS(w)                                                                     \
  for (i32 i0 = o0 * w.stride[0] - w.pad[0]; i0 < o0 * w.stride[0] - w.pad[0] + w.k[0]; i0++) \
    for (i32 i1 = o1 * w.stride[1] - w.pad[1]; i1 < o1 * w.stride[1] - w.pad[1] + w.k[1]; i1++) \
      for (i32 i2 = o2 * w.stride[2] - w.pad[2]; i2 < o2 * w.stride[2] - w.pad[2] + w.k[2]; i2++) { \
        if (i0 < 0 || i0 >= w.in[0] || i1 < 0 || i1 >= w.in[1] || i2 < 0 || i2 >= w.in[2]) continue;
// FOR_OUTPUTS visits the positions (o0, o1, o2) of the output whose windows have (i0, i1, i2).
#define FOR_OUTPUTS(w)                                                                    \
  for (i32 o0 = FIRST(w, i0, 0), l0 = LAST(w, i0, 0); o0 <= l0; o0++)                     \
    for (i32 o1 = FIRST(w, i1, 1), l1 = LAST(w, i1, 1); o1 <= l1; o1++)                   \
      for (i32 o2 = FIRST(w, i2, 2), l2 = LAST(w, i2, 2); o2 <= l2; o2++) {
#define FIRST(w, i, d) ((i) + w.pad[d] < w.k[d] ? 0 : ((i) + w.pad[d] - w.k[d]) / w.stride[d] + 1)
#define LAST(w, i, d) (((i) + w.pad[d]) / w.stride[d] < w.out[d] ? ((i) + w.pad[d]) / w.stride[d] : w.out[d] - 1)
#define IN_PLACE(p0, p1, p2) PLACE(w, b, ((p0) * w.in[1] + (p1)) * w.in[2] + (p2), ins, c, w.channels)
#define OUT_PLACE PLACE(w, b, (o0 * w.out[1] + o1) * w.out[2] + o2, outs, c, w.channels)
#define MAXPOOL(name, T)                                                                  \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), i64 n, Window w) {                             \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    OVER_OUTPUTS(n, w)                                                                    \
      C s = LOWEST_##T;                                                                   \
      FOR_INPUTS(w)                                                                       \
        C v = LD_##T(x, IN_PLACE(i0, i1, i2));                                            \
        if (v > s) s = v;                                                                 \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  }                                                                                       \
  /* The position of the largest element, for one-dimensional indices of TensorFlow. */   \
  KERNEL name##_at(OUT(S_##T, y), OUT(i64, at), IN(S_##T, x), i64 n, i32 with_batch, Window w) { \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_OUT(i64, at);                                                                     \
    USE_IN(S_##T, x);                                                                     \
    OVER_OUTPUTS(n, w)                                                                    \
      C s = LOWEST_##T;                                                                   \
      i64 best = -1;                                                                      \
      FOR_INPUTS(w)                                                                       \
        i64 p = IN_PLACE(i0, i1, i2);                                                     \
        C v = LD_##T(x, p);                                                               \
        if (best < 0 || v > s) {                                                          \
          s = v;                                                                          \
          best = p;                                                                       \
        }                                                                                 \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
      at[e] = with_batch ? best : best - (i64)b * ins * w.channels;                       \
    }                                                                                     \
  }                                                                                       \
  /* The position of the first largest element of each window in its image. */            \
  KERNEL name##_first(OUT(i32, at), IN(S_##T, x), i64 n, Window w) {                      \
    typedef C_##T C;                                                                      \
    USE_OUT(i32, at);                                                                     \
    USE_IN(S_##T, x);                                                                     \
    OVER_OUTPUTS(n, w)                                                                    \
      C s = 0;                                                                            \
      i32 best = -1;                                                                      \
      FOR_INPUTS(w)                                                                       \
        C v = LD_##T(x, IN_PLACE(i0, i1, i2));                                            \
        if (best < 0 || v > s) {                                                          \
          s = v;                                                                          \
          best = (i0 * w.in[1] + i1) * w.in[2] + i2;                                      \
        }                                                                                 \
      }                                                                                   \
      at[e] = best;                                                                       \
    }                                                                                     \
  }                                                                                       \
  /* An input element collects the gradients of the windows whose position it has. */     \
  KERNEL name##_grad(OUT(S_##T, y), IN(i32, at), IN(S_##T, g), i64 n, Window w) {         \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(i32, at);                                                                      \
    USE_IN(S_##T, g);                                                                     \
    OVER_INPUTS(n, w)                                                                     \
      C s = 0;                                                                            \
      FOR_OUTPUTS(w)                                                                      \
        i64 place = OUT_PLACE;                                                            \
        if (at[place] == ip) s += LD_##T(g, place);                                       \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  } \
  /* The gradient at the first element of each window that equals the maximum. */         \
  KERNEL name##_pick(OUT(S_##T, y), IN(S_##T, x), IN(S_##T, most), IN(S_##T, g), i64 n, Window w) { \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(S_##T, most);                                                                  \
    USE_IN(S_##T, g);                                                                     \
    OVER_OUTPUTS(n, w)                                                                    \
      C s = 0, v = LD_##T(most, e);                                                       \
      i32 found = 0;                                                                      \
      FOR_INPUTS(w)                                                                       \
        i64 place = IN_PLACE(i0, i1, i2);                                                 \
        if (!found && LD_##T(x, place) == v) {                                            \
          s = LD_##T(g, place);                                                           \
          found = 1;                                                                      \
        }                                                                                 \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  }
// IMAGEPLACES adds the offset of its image to each position: `per` positions are of one image of
// `size` elements.
#define IMAGEPLACES(name)                                                                 \
  KERNEL name(OUT(i64, y), IN(i64, at), i64 n, i64 per, i64 size) {                       \
    USE_OUT(i64, y);                                                                      \
    USE_IN(i64, at);                                                                      \
    EACH1(e, n) y[e] = at[e] + e / per * size;                                            \
  }
#define AVGPOOL(name, T)                                                                  \
  KERNEL name(OUT(S_##T, y), IN(S_##T, x), i64 n, Window w) {                             \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    OVER_OUTPUTS(n, w)                                                                    \
      C s = 0;                                                                            \
      i32 count = 0;                                                                      \
      FOR_INPUTS(w)                                                                       \
        s += LD_##T(x, IN_PLACE(i0, i1, i2));                                             \
        count++;                                                                          \
      }                                                                                   \
      ST_##T(y, e, s / (C)count);                                                         \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_grad(OUT(S_##T, y), IN(S_##T, g), i64 n, Window w) {                      \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, g);                                                                     \
    OVER_INPUTS(n, w)                                                                     \
      C s = 0;                                                                            \
      FOR_OUTPUTS(w)                                                                      \
        i32 count = SPAN(w, o0, 0) * SPAN(w, o1, 1) * SPAN(w, o2, 2);                     \
        s += LD_##T(g, OUT_PLACE) / (C)count;                                             \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  }
// The number of positions of the window of output o in the input, in dimension d.
#define LO(w, o, d) ((o) * (w).stride[d] - (w).pad[d])
#define SPAN(w, o, d)                                                                     \
  ((LO(w, o, d) + (w).k[d] < (w).in[d] ? LO(w, o, d) + (w).k[d] : (w).in[d]) - (LO(w, o, d) > 0 ? LO(w, o, d) : 0))
#define LOWEST_f16 (-65504.f)
#define LOWEST_bf16 FLOAT(0xff7f0000u)
#define LOWEST_f32 FLOAT(0xff7fffffu)
#define LOWEST_f64 DOUBLE((u64)0xffefffff << 32 | 0xffffffffu)

// kernels
IM2COL(im2col, u16 u32 u64)
COL2IM(col2im, FLOATS)
DEPTHWISE(depthwise, FLOATS)
MAXPOOL(maxpool, FLOATS)
IMAGEPLACES(imageplaces, -)
AVGPOOL(avgpool, FLOATS)
