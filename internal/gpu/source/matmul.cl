// Products of matrices: C[z] = A[z].B[z], or the sum over a part of k in each split.
//
// Element (i, p) of A is at i * ai + p * ap, element (p, j) of B at p * bp + j * bj, so that operands
// may be transposed. C is row major. Group 2 is z = batch * splits + split; za and zb are the
// distances of the matrices of a batch. With splits > 1 C is [batch, splits, m, n] of the computing
// type, else it is of the element type.
//
// A group of 256 items makes a square of TILE x TILE elements, an item PER x PER of them. DEPTH
// columns of A and rows of B are in shared memory at a time.
#define DEPTH 8
#define MATMUL(name, T, TILE, PER)                                                          \
  KERNEL name(OUT(S_##T, c), IN(S_##T, a), IN(S_##T, b), i32 m, i32 n, i32 k, i64 ai, i64 ap, \
              i64 bp, i64 bj, i64 za, i64 zb, i32 splits) {                                 \
    typedef C_##T C;                                                                        \
    USE_OUT(S_##T, c);                                                                      \
    GLOBAL C *partial = (GLOBAL C *)c;                                                      \
    USE_IN(S_##T, a);                                                                       \
    USE_IN(S_##T, b);                                                                       \
    SHARED(C, as, DEPTH * (TILE + 4));                                                      \
    SHARED(C, bs, DEPTH * (TILE + 4));                                                      \
    int tx = LOCAL_ID(0), ty = LOCAL_ID(1), t = ty * 16 + tx;                               \
    i64 z = GROUP_ID(2), batch = z / splits;                                                \
    i32 chunk = (k + splits - 1) / splits, p_lo = (i32)(z - batch * splits) * chunk;        \
    i32 p_hi = p_lo + chunk < k ? p_lo + chunk : k;                                         \
    i32 row0 = GROUP_ID(1) * TILE, col0 = GROUP_ID(0) * TILE;                               \
    a += batch * za;                                                                        \
    b += batch * zb;                                                                        \
    /* Neighbouring items load neighbouring addresses, whichever stride is 1. */            \
    int a_rows_first = ai == 1 && ap != 1, b_rows_first = bp == 1 && bj != 1;               \
    C acc[PER][PER];                                                                        \
    for (int i = 0; i < PER; i++)                                                           \
      for (int j = 0; j < PER; j++) acc[i][j] = 0;                                          \
    for (i32 p0 = p_lo; p0 < p_hi; p0 += DEPTH) {                                           \
      for (int e = t; e < DEPTH * TILE; e += 256) {                                         \
        int r = a_rows_first ? e % TILE : e / DEPTH, p = a_rows_first ? e / TILE : e % DEPTH; \
        as[p * (TILE + 4) + r] =                                                            \
            row0 + r < m && p0 + p < p_hi ? LD_##T(a, (row0 + r) * ai + (p0 + p) * ap) : (C)0; \
        int j = b_rows_first ? e / DEPTH : e % TILE, q = b_rows_first ? e % DEPTH : e / TILE; \
        bs[q * (TILE + 4) + j] =                                                            \
            col0 + j < n && p0 + q < p_hi ? LD_##T(b, (p0 + q) * bp + (col0 + j) * bj) : (C)0; \
      }                                                                                     \
      BARRIER();                                                                            \
      for (int p = 0; p < DEPTH; p++) {                                                     \
        C av[PER], bv[PER];                                                                 \
        for (int i = 0; i < PER; i++) {                                                     \
          av[i] = as[p * (TILE + 4) + PLACE(ty, i, PER)];                                   \
          bv[i] = bs[p * (TILE + 4) + PLACE(tx, i, PER)];                                   \
        }                                                                                   \
        for (int i = 0; i < PER; i++)                                                       \
          for (int j = 0; j < PER; j++) acc[i][j] = FMA(av[i], bv[j], acc[i][j]);           \
      }                                                                                     \
      BARRIER();                                                                            \
    }                                                                                       \
    for (int i = 0; i < PER; i++)                                                           \
      for (int j = 0; j < PER; j++) {                                                       \
        i32 r = row0 + PLACE(ty, i, PER), q = col0 + PLACE(tx, j, PER);                     \
        if (r < m && q < n) {                                                               \
          i64 at = (z * m + r) * n + q;                                                     \
          if (splits > 1)                                                                   \
            partial[at] = acc[i][j];                                                        \
          else                                                                              \
            ST_##T(c, at, acc[i][j]);                                                       \
        }                                                                                   \
      }                                                                                     \
  }
// An item's rows and columns come in pieces of 4, which are read with one 128-bit load each; the
// pieces of 16 items are next to each other, so that no bank of the shared memory is hit twice.
#define PLACE(t, i, per) ((per) == 8 ? ((i) / 4) * 64 + (t) * 4 + (i) % 4 : (t) * (per) + (i))
#define MATMUL128(name, T) MATMUL(name, T, 128, 8)
#define MATMUL32(name, T) MATMUL(name, T, 32, 2)

// kernels
MATMUL128(matmul128, FLOATS)
MATMUL32(matmul32, FLOATS)
