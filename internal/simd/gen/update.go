package main

// updates emits the steps of the optimizers. Scalars come in an array, in the order given in each doc.
func updates(t *target) {
	for _, nesterov := range []bool{false, true} {
		t.stream(momentum(nesterov))
		t.stream(adam(nesterov))
	}
	for _, centered := range []bool{false, true} {
		t.stream(rmsProp(centered))
	}
	t.stream(stream{
		name: "adagrad", doc: "p: rate, epsilon, share of g^2 that acc takes up (1 or 0)",
		in: []string{"w", "acc", "grad"}, out: []string{"w", "acc"}, array: 3, temps: 2, unroll: 2,
		body: func(t *target, x vars) {
			w, acc, g, s, d := x.v["w"], x.v["acc"], x.v["grad"], x.temp[0], x.temp[1]
			t.mul(s, g, x.p[2])
			t.fma(acc, s, g)
			t.sqrt(d, acc)
			t.add(d, d, x.p[1])
			t.mul(g, g, x.p[0])
			t.div(g, g, d)
			t.sub(w, w, g)
		},
	})
}

func pickName(base string, variant string, on bool) string {
	if on {
		return base + variant
	}
	return base
}

func momentum(nesterov bool) stream {
	return stream{
		name: pickName("momentum", "Nesterov", nesterov), doc: "p: rate, momentum",
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
		name: pickName("adam", "Nesterov", nesterov), doc: "p: corrected rate, 1-beta1, 1-beta2, epsilon",
		in: []string{"w", "m", "v", "grad"}, out: []string{"w", "m", "v"}, array: 4, temps: 2, unroll: 2,
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
			t.div(a, a, b)
			t.sub(w, w, a)
		},
	}
}

func rmsProp(centered bool) stream {
	streams := []string{"w", "ms", "mom"}
	if centered {
		streams = append(streams, "mg")
	}
	return stream{
		name: pickName("rmsProp", "Centered", centered), doc: "p: rate, 1-rho, momentum, epsilon",
		in: append(streams[:len(streams):len(streams)], "grad"), out: streams, array: 4, temps: 2, unroll: 2,
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
			t.sqrt(b, b)
			t.mul(a, g, x.p[0])
			t.div(a, a, b)
			t.horner(mom, x.p[2], a)
			t.sub(w, w, mom)
		},
	}
}
