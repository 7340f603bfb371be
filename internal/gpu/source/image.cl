// Resizing of images [batch, rows, columns, channels].
//
// An axis is one dimension: its sizes, the distance between two output pixels in the input, and
// whether positions are those of centers.
typedef struct {
  i32 in, out;
  f32 scale;
  i32 centers;
} Axis;
INLINE f32 position(Axis a, i64 o) { return a.centers ? ((f32)o + 0.5f) * a.scale - 0.5f : (f32)o * a.scale; }
// between sets the two pixels of the input that output pixel o lies between, and returns the weight
// of the upper one.
INLINE f32 between(Axis a, i64 o, i32 *lower, i32 *upper) {
  f32 p = position(a, o), low = floor(p);
  i32 l = (i32)low, u = (i32)ceil(p);
  *lower = l < 0 ? 0 : l < a.in ? l : a.in - 1;
  *upper = u < a.in ? u : a.in - 1;
  return p - low;
}
// nearest returns the pixel of the input of output pixel o.
INLINE i32 nearest(Axis a, i64 o, i32 corners) {
  f32 p = a.centers ? ((f32)o + 0.5f) * a.scale : (f32)o * a.scale;
  if (corners) p = round(p);
  i32 i = (i32)floor(p);
  return i < 0 ? 0 : i < a.in ? i : a.in - 1;
}
// FIRST and LAST bound the output pixels for which pixel i of the input takes part. They may be too
// wide by a few pixels, never too narrow: centers shift positions by up to half a pixel of the input.
// The pixels at the border also serve what is outside.
#define SLACK 3
INLINE i32 first_output(Axis a, i32 i) {
  f32 o = floor(((f32)i - 1) / a.scale) - SLACK;
  return i == 0 || o < 0 ? 0 : o < (f32)a.out ? (i32)o : a.out;
}
INLINE i32 last_output(Axis a, i32 i) {
  f32 o = ceil(((f32)i + 1.5f) / a.scale) + SLACK;
  return i == a.in - 1 || o >= (f32)a.out ? a.out - 1 : (i32)o;
}
#define PIXEL(e, ax, ay, size, channels)                                                  \
  i64 q = (e) / (channels);                                                               \
  i32 c = (i32)((e) - q * (channels)), px = (i32)(q % (ax).size), py = (i32)(q / (ax).size % (ay).size); \
  i64 b = q / (ax).size / (ay).size

// BILINEAR interpolates between pixels, first along rows. name_grad is the gradient: a pixel of the
// input collects from all outputs that it takes part in.
#define BILINEAR(name, T)                                                                 \
  KERNEL name(OUT(f32, y), IN(S_##T, x), i64 n, i32 channels, Axis ay, Axis ax) {         \
    USE_OUT(f32, y);                                                                      \
    USE_IN(S_##T, x);                                                                     \
    EACH1(e, n) {                                                                         \
      PIXEL(e, ax, ay, out, channels);                                                    \
      i32 top, bottom, left, right;                                                       \
      f32 down = between(ay, py, &top, &bottom), across = between(ax, px, &left, &right); \
      i64 above = (b * ay.in + top) * ax.in, below = (b * ay.in + bottom) * ax.in;        \
      f32 tl = (f32)LD_##T(x, (above + left) * channels + c);                             \
      f32 tr = (f32)LD_##T(x, (above + right) * channels + c);                            \
      f32 bl = (f32)LD_##T(x, (below + left) * channels + c);                             \
      f32 br = (f32)LD_##T(x, (below + right) * channels + c);                            \
      f32 t = tl + (tr - tl) * across, u = bl + (br - bl) * across;                       \
      y[e] = t + (u - t) * down;                                                          \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_grad(OUT(S_##T, y), IN(f32, g), i64 n, i32 channels, Axis ay, Axis ax) {  \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(f32, g);                                                                       \
    EACH1(e, n) {                                                                         \
      PIXEL(e, ax, ay, in, channels);                                                     \
      C s = 0;                                                                            \
      for (i32 oy = first_output(ay, py), ly = last_output(ay, py); oy <= ly; oy++) {     \
        i32 top, bottom;                                                                  \
        f32 down = between(ay, oy, &top, &bottom);                                        \
        if (top != py && bottom != py) continue;                                          \
        for (i32 ox = first_output(ax, px), lx = last_output(ax, px); ox <= lx; ox++) {   \
          i32 left, right;                                                                \
          f32 across = between(ax, ox, &left, &right);                                    \
          if (left != px && right != px) continue;                                        \
          f32 v = g[((b * ay.out + oy) * ax.out + ox) * channels + c];                    \
          if (top == py && left == px) s += (C)(v * (1 - down) * (1 - across));           \
          if (top == py && right == px) s += (C)(v * (1 - down) * across);                \
          if (bottom == py && left == px) s += (C)(v * down * (1 - across));              \
          if (bottom == py && right == px) s += (C)(v * down * across);                   \
        }                                                                                 \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  }
#define NEAREST(name, S)                                                                  \
  KERNEL name(OUT(S, y), IN(S, x), i64 n, i32 channels, i32 corners, Axis ay, Axis ax) {  \
    USE_OUT(S, y);                                                                        \
    USE_IN(S, x);                                                                         \
    EACH1(e, n) {                                                                         \
      PIXEL(e, ax, ay, out, channels);                                                    \
      y[e] = x[((b * ay.in + nearest(ay, py, corners)) * ax.in + nearest(ax, px, corners)) * channels + c]; \
    }                                                                                     \
  }
#define NEARESTGRAD(name, T)                                                              \
  KERNEL name(OUT(S_##T, y), IN(S_##T, g), i64 n, i32 channels, i32 corners, Axis ay, Axis ax) { \
    typedef C_##T C;                                                                      \
    USE_OUT(S_##T, y);                                                                    \
    USE_IN(S_##T, g);                                                                     \
    EACH1(e, n) {                                                                         \
      PIXEL(e, ax, ay, in, channels);                                                     \
      C s = 0;                                                                            \
      for (i32 oy = first_output(ay, py), ly = last_output(ay, py); oy <= ly; oy++) {     \
        if (nearest(ay, oy, corners) != py) continue;                                     \
        for (i32 ox = first_output(ax, px), lx = last_output(ax, px); ox <= lx; ox++)     \
          if (nearest(ax, ox, corners) == px)                                             \
            s += LD_##T(g, ((b * ay.out + oy) * ax.out + ox) * channels + c);             \
      }                                                                                   \
      ST_##T(y, e, s);                                                                    \
    }                                                                                     \
  }

// kernels
BILINEAR(bilinear, FLOATS)
NEAREST(nearest, u16 u32 u64)
NEARESTGRAD(nearestgrad, FLOATS)
