package main

// updates emits the optimizer steps. Scalars are in an array, in the order given in each doc.
func updates(t *target) {
	for _, nesterov := range []bool{false, true} {
		t.stream(momentum(nesterov))
		t.stream(adam(nesterov))
	}
	for _, centered := range []bool{false, true} {
		t.stream(rmsProp(t, centered))
	}
	t.stream(ftrl(t))
	t.stream(adagrad(t, false))
	t.stream(adagrad(t, true))
}

// adagrad returns a step of Adagrad. If nothing is added to the root, it multiplies by the
// reciprocal root, which is faster than a root and a division.
func adagrad(t *target, root bool) stream {
	return stream{
		name: pickName("adagrad", "Root", root), doc: "takes the parameters p = rate, epsilon (0 in the form Root), mask of the bits of g that are added to acc (all or none)",
		in: []string{"w", "acc", "grad"}, out: []string{"w", "acc"}, array: 3, temps: 3, unroll: 2, consts: rsqrtConsts(t),
		body: func(t *target, x vars) {
			w, acc, g, s, d := x.v["w"], x.v["acc"], x.v["grad"], x.temp[0], x.temp[1]
			t.and(s, g, x.p[2])
			t.fma(acc, s, s)
			t.mul(g, g, x.p[0])
			if root {
				rsqrt(t, d, acc, []vec{s, x.temp[2]})
				t.fnma(w, g, d)
				return
			}
			t.sqrt(d, acc)
			t.add(d, d, x.p[1])
			t.quotient(g, g, d, s, x.temp[2])
			t.sub(w, w, g)
		},
	}
}

// quotient computes dst = a/b to within 0.6 ULP, unless 1/b is denormal. With AVX-512 it corrects
// an estimate of 14 bits. This is not faster than a division by itself, but runs in parallel with
// the roots, which occupy the divider.
func (t *target) quotient(dst, a, b, tmp, tmp2 vec) {
	if t.isa != avx512 || t.bits != 32 {
		t.div(dst, a, b)
		return
	}
	t.VRCP14PS(b, tmp)
	t.mul(tmp2, a, tmp)
	if dst != a {
		t.mov(dst, a)
	}
	t.fnma(dst, tmp2, b)
	t.horner(dst, tmp, tmp2)
	t.choose(dst, unordered, dst, dst, tmp2, nil) // for zero and infinity the estimate is exact
}

// ftrl returns a step of Ftrl whose rates are proportional to the inverse root of the sum of
// squares.
func ftrl(t *target) stream {
	return stream{
		name: "ftrl", doc: "takes the parameters p = scale, 1/divisor, l1*scale, 2*l2*scale, 2*shrinkage",
		in: []string{"w", "acc", "linear", "grad"}, out: []string{"w", "acc", "linear"}, array: 5, temps: 4, unroll: 1,
		consts: []uint64{signBit(t), 0},
		body: func(t *target, x vars) {
			w, acc, linear, g := x.v["w"], x.v["acc"], x.v["linear"], x.v["grad"]
			scale, inverse, bound, l2, shrink := x.p[0], x.p[1], x.p[2], x.p[3], x.p[4]
			root, old, a, b := x.temp[0], x.temp[1], x.temp[2], x.temp[3]
			t.sqrt(old, acc)
			t.fma(acc, g, g)
			t.sqrt(root, acc)
			t.sub(old, root, old)
			t.mul(old, old, inverse)
			t.fma(g, shrink, w)
			t.fma(linear, g, scale)
			t.fnma(linear, old, w)
			// w = (sign(linear)*bound - linear) / (root/divisor + l2) where |linear| > bound and
			// linear is not 0, and 0 elsewhere.
			t.horner(root, inverse, l2)
			t.and(b, linear, t.k(signBit(t)))
			t.xor(b, b, bound)
			t.sub(b, b, linear)
			t.quotient(b, b, root, a, old)
			t.keep(b, notEqual, linear, t.kf(0), b, a)
			t.xor(old, linear, t.k(signBit(t)))
			t.max(old, old, linear) // |linear|
			t.keep(w, greater, old, bound, b, a)
		},
	}
}

func pickName(base string, variant string, on bool) string {
	if on {
		return base + variant
	}
	return base
}

func momentum(nesterov bool) stream {
	return stream{
		name: pickName("momentum", "Nesterov", nesterov), doc: "takes the parameters p = rate, momentum",
		in: []string{"w", "acc", "grad"}, out: []string{"w", "acc"}, array: 2, temps: 1, unroll: 2,
		body: func(t *target, x vars) {
			w, acc, g, tmp := x.v["w"], x.v["acc"], x.v["grad"], x.temp[0]
			t.horner(acc, x.p[1], g)
			if !nesterov {
				t.fnma(w, acc, x.p[0])
				return
			}
			t.mul(tmp, acc, x.p[1])
			t.add(tmp, tmp, g)
			t.fnma(w, tmp, x.p[0])
		},
	}
}

func adam(nesterov bool) stream {
	return stream{
		name: pickName("adam", "Nesterov", nesterov), doc: "takes the parameters p = corrected rate, 1-beta1, 1-beta2, epsilon",
		in: []string{"w", "m", "v", "grad"}, out: []string{"w", "m", "v"}, array: 4, temps: 3, unroll: 2,
		body: func(t *target, x vars) {
			w, m, v, g, a, b := x.v["w"], x.v["m"], x.v["v"], x.v["grad"], x.temp[0], x.temp[1]
			t.sub(a, g, m)
			t.fma(m, a, x.p[1])
			t.mul(a, g, g)
			t.sub(a, a, v)
			t.fma(v, a, x.p[2])
			t.sqrt(b, v)
			t.add(b, b, x.p[3])
			if nesterov { // beta1*m + (1-beta1)*g = m + (1-beta1)*(g-m)
				t.sub(a, g, m)
				t.horner(a, x.p[1], m)
				t.mul(a, a, x.p[0])
			} else {
				t.mul(a, m, x.p[0])
			}
			t.quotient(a, a, b, g, x.temp[2])
			t.sub(w, w, a)
		},
	}
}

func rmsProp(t *target, centered bool) stream {
	streams := []string{"w", "ms", "mom"}
	if centered {
		streams = append(streams, "mg")
	}
	return stream{
		name: pickName("rmsProp", "Centered", centered), doc: "takes the parameters p = rate, 1-rho, momentum, epsilon",
		in: append(streams[:len(streams):len(streams)], "grad"), out: streams, array: 4, temps: 4, unroll: 2, consts: rsqrtConsts(t),
		body: func(t *target, x vars) {
			w, ms, mom, g, a, b := x.v["w"], x.v["ms"], x.v["mom"], x.v["grad"], x.temp[0], x.temp[1]
			t.mul(a, g, g)
			t.sub(a, a, ms)
			t.fma(ms, a, x.p[1])
			t.add(b, ms, x.p[3])
			if centered {
				mg := x.v["mg"]
				t.sub(a, g, mg)
				t.fma(mg, a, x.p[1])
				t.fnma(b, mg, mg)
			}
			rsqrt(t, a, b, []vec{x.temp[2], x.temp[3]})
			t.mul(g, g, x.p[0])
			t.mul(a, a, g)
			t.horner(mom, x.p[2], a)
			t.sub(w, w, mom)
		},
	}
}
