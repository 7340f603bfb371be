// Cells of recurrent layers, after the products with their weights. x and r are the products of the
// inputs and of the previous outputs with their weights, `before` is the previous state. A row has
// `cells` elements, and a row of products has them for each gate.
#define SIGMOID(v) (1 / (1 + exp(-(v))))
#define GATE(T, k) (LD_##T(x, at + (k) * cells) + LD_##T(r, at + (k) * cells) + LD_##T(b, (k) * cells + c))
// LSTM computes n cells. `cell` and `forget` are the positions of these gates; that of the input is 0,
// and that of the output is 3. _grad computes the gradients of the products and of the previous
// states; with `more`, two gradients of states and of outputs are added. _peep sums the gradients
// of the peephole weights over the rows; with `more`, to those that are there.
#define LSTM(name, T)                                                                     \
  KERNEL name(OUT(S_##T, i_), OUT(S_##T, cs_), OUT(S_##T, f_), OUT(S_##T, o_), OUT(S_##T, ci_), \
              OUT(S_##T, co_), OUT(S_##T, h_), IN(S_##T, x), IN(S_##T, r), IN(S_##T, before), \
              IN(S_##T, b), IN(S_##T, wci), IN(S_##T, wcf), IN(S_##T, wco), i64 n, i32 cells, \
              i32 cell, i32 forget, f32 bias, f32 clip, i32 peephole) {                   \
    USE_OUT(S_##T, i_);                                                                   \
    USE_OUT(S_##T, cs_);                                                                  \
    USE_OUT(S_##T, f_);                                                                   \
    USE_OUT(S_##T, o_);                                                                   \
    USE_OUT(S_##T, ci_);                                                                  \
    USE_OUT(S_##T, co_);                                                                  \
    USE_OUT(S_##T, h_);                                                                   \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(S_##T, r);                                                                     \
    USE_IN(S_##T, before);                                                                \
    USE_IN(S_##T, b);                                                                     \
    USE_IN(S_##T, wci);                                                                   \
    USE_IN(S_##T, wcf);                                                                   \
    USE_IN(S_##T, wco);                                                                   \
    EACH1(e, n) {                                                                         \
      i64 c = e % cells, at = e / cells * 4 * cells + c;                                  \
      f32 prev = LD_##T(before, e), i = GATE(T, 0), f = GATE(T, forget) + bias, o = GATE(T, 3); \
      if (peephole) {                                                                     \
        i += prev * LD_##T(wci, c);                                                       \
        f += prev * LD_##T(wcf, c);                                                       \
      }                                                                                   \
      i = SIGMOID(i);                                                                     \
      f = SIGMOID(f);                                                                     \
      f32 ci = tanh(GATE(T, cell)), cs = i * ci + f * prev;                               \
      if (clip > 0) cs = cs < -clip ? -clip : cs > clip ? clip : cs;                      \
      if (peephole) o += cs * LD_##T(wco, c);                                             \
      o = SIGMOID(o);                                                                     \
      f32 co = tanh(cs);                                                                  \
      ST_##T(i_, e, i);                                                                   \
      ST_##T(cs_, e, cs);                                                                 \
      ST_##T(f_, e, f);                                                                   \
      ST_##T(o_, e, o);                                                                   \
      ST_##T(ci_, e, ci);                                                                 \
      ST_##T(co_, e, co);                                                                 \
      ST_##T(h_, e, o * co);                                                              \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_grad(OUT(S_##T, d), OUT(S_##T, back), IN(S_##T, i_), IN(S_##T, f_), IN(S_##T, o_), \
                     IN(S_##T, ci_), IN(S_##T, co_), IN(S_##T, before), IN(S_##T, cs1), IN(S_##T, cs2), \
                     IN(S_##T, h1), IN(S_##T, h2), IN(S_##T, wci), IN(S_##T, wcf), IN(S_##T, wco), i64 n, \
                     i32 cells, i32 cell, i32 forget, i32 more, i32 peephole) {           \
    USE_OUT(S_##T, d);                                                                    \
    USE_OUT(S_##T, back);                                                                 \
    USE_IN(S_##T, i_);                                                                    \
    USE_IN(S_##T, f_);                                                                    \
    USE_IN(S_##T, o_);                                                                    \
    USE_IN(S_##T, ci_);                                                                   \
    USE_IN(S_##T, co_);                                                                   \
    USE_IN(S_##T, before);                                                                \
    USE_IN(S_##T, cs1);                                                                   \
    USE_IN(S_##T, cs2);                                                                   \
    USE_IN(S_##T, h1);                                                                    \
    USE_IN(S_##T, h2);                                                                    \
    USE_IN(S_##T, wci);                                                                   \
    USE_IN(S_##T, wcf);                                                                   \
    USE_IN(S_##T, wco);                                                                   \
    EACH1(e, n) {                                                                         \
      i64 c = e % cells, at = e / cells * 4 * cells + c;                                  \
      f32 i = LD_##T(i_, e), f = LD_##T(f_, e), o = LD_##T(o_, e), ci = LD_##T(ci_, e), co = LD_##T(co_, e); \
      f32 dcs = LD_##T(cs1, e), dh = LD_##T(h1, e);                                       \
      if (more) {                                                                         \
        dcs += LD_##T(cs2, e);                                                            \
        dh += LD_##T(h2, e);                                                              \
      }                                                                                   \
      f32 dout = o * (1 - o) * dh * co;                                                   \
      dcs += (1 - co * co) * dh * o;                                                      \
      if (peephole) dcs += dout * LD_##T(wco, c);                                         \
      f32 df = f * (1 - f) * dcs * LD_##T(before, e), di = i * (1 - i) * dcs * ci, previous = dcs * f; \
      if (peephole) previous += di * LD_##T(wci, c) + df * LD_##T(wcf, c);                \
      ST_##T(d, at, di);                                                                  \
      ST_##T(d, at + (i64)cell * cells, (1 - ci * ci) * dcs * i);                         \
      ST_##T(d, at + (i64)forget * cells, df);                                            \
      ST_##T(d, at + 3 * (i64)cells, dout);                                               \
      ST_##T(back, e, previous);                                                          \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_peep(OUT(S_##T, wci), OUT(S_##T, wcf), OUT(S_##T, wco), IN(S_##T, d), IN(S_##T, before), \
                     IN(S_##T, cs), i64 cells, i64 rows, i32 forget, i32 more) {          \
    USE_OUT(S_##T, wci);                                                                  \
    USE_OUT(S_##T, wcf);                                                                  \
    USE_OUT(S_##T, wco);                                                                  \
    USE_IN(S_##T, d);                                                                     \
    USE_IN(S_##T, before);                                                                \
    USE_IN(S_##T, cs);                                                                    \
    EACH1(c, cells) {                                                                     \
      f32 si = 0, sf = 0, so = 0;                                                         \
      for (i64 row = 0; row < rows; row++) {                                              \
        f32 prev = LD_##T(before, row * cells + c);                                       \
        si += LD_##T(d, row * 4 * cells + c) * prev;                                      \
        sf += LD_##T(d, (row * 4 + forget) * cells + c) * prev;                           \
        so += LD_##T(d, (row * 4 + 3) * cells + c) * LD_##T(cs, row * cells + c);         \
      }                                                                                   \
      ST_##T(wci, c, more ? LD_##T(wci, c) + si : si);                                    \
      ST_##T(wcf, c, more ? LD_##T(wcf, c) + sf : sf);                                    \
      ST_##T(wco, c, more ? LD_##T(wco, c) + so : so);                                    \
    }                                                                                     \
  }
// GRU has a kernel for each step between two products. A row of products of the first has the reset gate
// and the update gate.
#define GRU(name, T)                                                                      \
  KERNEL name(OUT(S_##T, reset), OUT(S_##T, update), OUT(S_##T, kept), IN(S_##T, x), IN(S_##T, r), \
                      IN(S_##T, b), IN(S_##T, before), i64 n, i32 cells) {                \
    USE_OUT(S_##T, reset);                                                                \
    USE_OUT(S_##T, update);                                                               \
    USE_OUT(S_##T, kept);                                                                 \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(S_##T, r);                                                                     \
    USE_IN(S_##T, b);                                                                     \
    USE_IN(S_##T, before);                                                                \
    EACH(e, n) {                                                                          \
      i64 c = e % cells, at = e / cells * 2 * cells + c;                                  \
      f32 open = GATE(T, 0);                                                              \
      open = SIGMOID(open);                                                               \
      ST_##T(reset, e, open);                                                             \
      ST_##T(kept, e, LD_##T(before, e) * open);                                          \
      f32 u = GATE(T, 1);                                                                 \
      ST_##T(update, e, SIGMOID(u));                                                      \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_state(OUT(S_##T, candidate), OUT(S_##T, h), IN(S_##T, x), IN(S_##T, r), IN(S_##T, b), \
                      IN(S_##T, update), IN(S_##T, before), i64 n, i32 cells) {           \
    USE_OUT(S_##T, candidate);                                                            \
    USE_OUT(S_##T, h);                                                                    \
    USE_IN(S_##T, x);                                                                     \
    USE_IN(S_##T, r);                                                                     \
    USE_IN(S_##T, b);                                                                     \
    USE_IN(S_##T, update);                                                                \
    USE_IN(S_##T, before);                                                                \
    EACH(e, n) {                                                                          \
      i64 c = e % cells, at = e;                                                          \
      f32 v = tanh(GATE(T, 0));                                                           \
      ST_##T(candidate, e, v);                                                            \
      ST_##T(h, e, LD_##T(update, e) * (LD_##T(before, e) - v) + v);                      \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_candidate(OUT(S_##T, dc), OUT(S_##T, d), IN(S_##T, update), IN(S_##T, candidate), \
                          IN(S_##T, before), IN(S_##T, dh), i64 n, i32 cells) {           \
    USE_OUT(S_##T, dc);                                                                   \
    USE_OUT(S_##T, d);                                                                    \
    USE_IN(S_##T, update);                                                                \
    USE_IN(S_##T, candidate);                                                             \
    USE_IN(S_##T, before);                                                                \
    USE_IN(S_##T, dh);                                                                    \
    EACH(e, n) {                                                                          \
      f32 u = LD_##T(update, e), v = LD_##T(candidate, e), g = LD_##T(dh, e);             \
      ST_##T(dc, e, g * (1 - u) * (1 - v * v));                                           \
      ST_##T(d, e / cells * 2 * cells + cells + e % cells, g * (LD_##T(before, e) - v) * u * (1 - u)); \
    }                                                                                     \
  }                                                                                       \
  KERNEL name##_reset(OUT(S_##T, back), OUT(S_##T, d), IN(S_##T, dkept), IN(S_##T, reset), IN(S_##T, update), \
                      IN(S_##T, before), IN(S_##T, dh), i64 n, i32 cells) {               \
    USE_OUT(S_##T, back);                                                                 \
    USE_OUT(S_##T, d);                                                                    \
    USE_IN(S_##T, dkept);                                                                 \
    USE_IN(S_##T, reset);                                                                 \
    USE_IN(S_##T, update);                                                                \
    USE_IN(S_##T, before);                                                                \
    USE_IN(S_##T, dh);                                                                    \
    EACH(e, n) {                                                                          \
      f32 g = LD_##T(dkept, e), open = LD_##T(reset, e);                                  \
      ST_##T(d, e / cells * 2 * cells + e % cells, g * LD_##T(before, e) * open * (1 - open)); \
      ST_##T(back, e, g * open + LD_##T(dh, e) * LD_##T(update, e));                      \
    }                                                                                     \
  }

// kernels
LSTM(lstm, f16 f32)
GRU(gru, f32)
