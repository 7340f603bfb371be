package main

// erf x = x*P(x^2)/Q(x^2) up to erfMax, from where on it is 1; highest power first, maximal error 2.0e-8.
var (
	erfP = []float64{2.041955617138856e-06, 0.00028480875706963723, 0.0037796460181681694, 0.052790403287467626,
		0.19078477712586844, 1.1283791453451208}
	erfQ = []float64{3.800392392955768e-05, 0.001165220251101268, 0.01499751382707945, 0.11425790566126884,
		0.5024113260828783, 1}
)

const erfMax = 3.93

func erfConsts(t *target) []uint64 {
	c := append([]uint64{signBit(t) - 1, signBit(t)}, t.floats(erfMax)...)
	return append(append(c, t.floats(erfP...)...), t.floats(erfQ...)...)
}

func erfBody(t *target, x vec, temp []vec) {
	a, u, p, q := temp[0], temp[1], temp[2], temp[3]
	t.and(a, x, t.k(signBit(t)-1))
	t.min(a, t.krf(erfMax, u), a)
	t.mul(u, a, a)
	t.poly(p, u, erfP)
	t.poly(q, u, erfQ)
	t.mul(p, p, a)
	t.div(p, p, q)
	t.min(p, t.krf(1, q), p)
	t.and(x, x, t.k(signBit(t)))
	t.or(x, x, p)
}
