package main

// arithmetic emits the maps of one, two and three slices that take a few instructions per element.
func arithmetic(t *target) {
	for _, u := range unaries {
		t.stream(stream{
			name: u.name, doc: u.doc, in: []string{"src"}, out: []string{"dst"}, consts: u.consts(t), temps: 2, unroll: 4,
			body: func(t *target, x vars) { u.body(t, x.v["dst"], x.v["src"], x.temp) },
		})
	}
	for _, b := range binaries {
		t.stream(stream{
			name: b.name, doc: "dst = " + b.doc, in: []string{"a", "b"}, out: []string{"dst"}, consts: b.consts(t),
			temps: 2, unroll: 4,
			body: func(t *target, x vars) { b.body(t, x.v["dst"], x.v["a"], x.v["b"], x.temp) },
		})
	}
	for _, b := range scalars {
		t.stream(stream{
			name: b.name, doc: "dst = " + b.doc, in: []string{"a"}, out: []string{"dst"}, scalars: []string{"b"},
			consts: b.consts(t), temps: 2, unroll: 4,
			body: func(t *target, x vars) { b.body(t, x.v["dst"], x.v["a"], x.v["b"], x.temp) },
		})
	}
	t.stream(stream{
		name: "fill", doc: "dst = v", out: []string{"dst"}, scalars: []string{"v"}, unroll: 4,
		body: func(t *target, x vars) { t.mov(x.v["dst"], x.v["v"]) },
	})
	t.stream(stream{
		name: "clamp", doc: "dst = max(min(src, high), low); a bound that is NaN is ignored",
		in: []string{"src"}, out: []string{"dst"}, scalars: []string{"low", "high"}, unroll: 4,
		body: func(t *target, x vars) {
			t.min(x.v["dst"], x.v["high"], x.v["src"])
			t.max(x.v["dst"], x.v["low"], x.v["dst"])
		},
	})
	t.stream(stream{
		name: "leaky", doc: "dst = x where by > 0, alpha*x elsewhere", in: []string{"x", "by"}, out: []string{"dst"},
		scalars: []string{"alpha"}, consts: []uint64{0}, temps: 2, unroll: 4,
		body: func(t *target, x vars) {
			t.mul(x.v["dst"], x.v["x"], x.v["alpha"])
			t.choose(x.v["dst"], greater, x.v["by"], t.krf(0, x.temp[0]), x.v["x"], x.temp[1])
		},
	})
	for _, p := range []struct {
		name, doc string
		pred      int
	}{{"selectLess", "<", less}, {"selectGreater", ">", greater}} {
		t.stream(stream{
			name: p.name, doc: "dst = a where x " + p.doc + " bound, b elsewhere", in: []string{"x", "a", "b"}, out: []string{"dst"},
			scalars: []string{"bound"}, temps: 1, unroll: 2,
			body: func(t *target, x vars) {
				t.mov(x.v["dst"], x.v["b"])
				t.choose(x.v["dst"], p.pred, x.v["x"], x.v["bound"], x.v["a"], x.temp[0])
			},
		})
	}
	t.stream(stream{
		name: "add4", doc: "dst = a + b + c + d", in: []string{"a", "b", "c", "d"}, out: []string{"dst"}, unroll: 2,
		body: func(t *target, x vars) {
			t.add(x.v["a"], x.v["a"], x.v["b"])
			t.add(x.v["a"], x.v["a"], x.v["c"])
			t.add(x.v["dst"], x.v["a"], x.v["d"])
		},
	})
	t.stream(stream{
		name: "axpy", doc: "y += a*x", in: []string{"y", "x"}, out: []string{"y"}, scalars: []string{"a"}, unroll: 4,
		body: func(t *target, x vars) { t.fma(x.v["y"], x.v["a"], x.v["x"]) },
	})
	t.stream(stream{
		name: "axpby", doc: "dst = a*x + b*y", in: []string{"x", "y"}, out: []string{"dst"}, scalars: []string{"a", "b"},
		unroll: 4,
		body: func(t *target, x vars) {
			t.mul(x.v["dst"], x.v["a"], x.v["x"])
			t.fma(x.v["dst"], x.v["b"], x.v["y"])
		},
	})
}

// binary is a map of two slices, or of a slice and a scalar.
type binary struct {
	name, doc string
	consts    func(t *target) []uint64
	body      func(t *target, dst, a, b vec, temp []vec)
}

func none(*target) []uint64  { return nil }
func zero(*target) []uint64  { return []uint64{0} }
func one(t *target) []uint64 { return []uint64{t.float(1)} }

var binaries = []binary{
	{"add", "a + b", none, func(t *target, dst, a, b vec, _ []vec) { t.add(dst, a, b) }},
	{"sub", "a - b", none, func(t *target, dst, a, b vec, _ []vec) { t.sub(dst, a, b) }},
	{"mul", "a * b", none, func(t *target, dst, a, b vec, _ []vec) { t.mul(dst, a, b) }},
	{"div", "a / b", none, func(t *target, dst, a, b vec, _ []vec) { t.div(dst, a, b) }},
	{"max", "max(a, b), NaN if either is NaN", none, maximum},
	{"min", "min(a, b), NaN if either is NaN", none, minimum},
	{"squaredDifference", "(a-b)^2", none, func(t *target, dst, a, b vec, _ []vec) {
		t.sub(dst, a, b)
		t.mul(dst, dst, dst)
	}},
	{"reluGrad", "a where b > 0, 0*a elsewhere", zeroOne, func(t *target, dst, a, b vec, temp []vec) {
		t.keep(dst, greater, b, t.krf(0, temp[0]), t.krf(1, temp[1]), temp[0])
		t.mul(dst, dst, a)
	}},
	{"divNoNaN", "a / b, or 0 where b is 0", zero, func(t *target, dst, a, b vec, temp []vec) {
		t.div(temp[0], a, b)
		t.keep(dst, notEqual, b, t.kf(0), temp[0], temp[1])
	}},
	{"mulNoNaN", "a * b, or 0 where b is 0", zero, func(t *target, dst, a, b vec, temp []vec) {
		t.mul(temp[0], a, b)
		t.keep(dst, notEqual, b, t.kf(0), temp[0], temp[1])
	}},
	{"tanhGrad", "a * (1 - b*b)", one, func(t *target, dst, a, b vec, temp []vec) {
		t.mov(temp[0], t.kf(1))
		t.fnma(temp[0], b, b)
		t.mul(dst, a, temp[0])
	}},
	{"sigmoidGrad", "a * (1 - b) * b", one, func(t *target, dst, a, b vec, temp []vec) {
		t.sub(temp[0], t.krf(1, temp[0]), b)
		t.mul(temp[0], temp[0], a)
		t.mul(dst, temp[0], b)
	}},
}

var scalars = []binary{
	{"addScalar", "a + b", none, binaries[0].body},
	{"mulScalar", "a * b", none, binaries[2].body},
	{"divScalar", "a / b", none, binaries[3].body},
	{"maxScalar", "max(a, b), NaN if either is NaN", none, maximum},
	{"minScalar", "min(a, b), NaN if either is NaN", none, minimum},
	{"scalarSub", "b - a", none, func(t *target, dst, a, b vec, _ []vec) { t.sub(dst, b, a) }},
	{"scalarDiv", "b / a", none, func(t *target, dst, a, b vec, _ []vec) { t.div(dst, b, a) }},
}

func zeroOne(t *target) []uint64 { return []uint64{0, t.float(1)} }

// maximum and minimum return NaN if either operand is NaN. The instructions return b if a is NaN.
func maximum(t *target, dst, a, b vec, temp []vec) {
	t.max(temp[0], a, b)
	t.choose(temp[0], unordered, a, a, a, temp[1])
	t.mov(dst, temp[0])
}

func minimum(t *target, dst, a, b vec, temp []vec) {
	t.min(temp[0], a, b)
	t.choose(temp[0], unordered, a, a, a, temp[1])
	t.mov(dst, temp[0])
}

// unary is a map of one slice.
type unary struct {
	name, doc string
	consts    func(t *target) []uint64
	body      func(t *target, dst, src vec, temp []vec)
}

// rsqrt: AVX-512 has an estimate y of 14 bits. A Newton step adds half of y*(1 - src*y*y); float64
// takes two. For 0 and infinity the step is NaN and the estimate is exact.
func rsqrt(t *target, dst, src vec, temp []vec) {
	if t.isa != avx512 {
		t.sqrt(temp[1], src)
		t.div(dst, t.krf(1, temp[0]), temp[1])
		return
	}
	y, rest := temp[0], temp[1]
	t.pick(t.VRSQRT14PS, t.VRSQRT14PD, src, y)
	steps := by(t, 1, 2)
	for i := range steps {
		t.mul(rest, src, y)
		t.mov(dst, t.kf(1))
		t.fnma(dst, rest, y)
		t.mul(rest, dst, t.kf(0.5))
		t.mov(dst, y)
		t.fma(dst, y, rest)
		t.choose(dst, unordered, rest, rest, y, nil)
		if i < steps-1 {
			t.mov(y, dst)
		}
	}
}

func rsqrtConsts(t *target) []uint64 { return t.floats(1, 0.5) }

func signBit(t *target) uint64 { return 1 << (t.bits - 1) }

var unaries = []unary{
	{"neg", "dst = -src", func(t *target) []uint64 { return []uint64{signBit(t)} },
		func(t *target, dst, src vec, _ []vec) { t.xor(dst, src, t.k(signBit(t))) }},
	{"abs", "dst = |src|", func(t *target) []uint64 { return []uint64{signBit(t) - 1} },
		func(t *target, dst, src vec, _ []vec) { t.and(dst, src, t.k(signBit(t)-1)) }},
	{"square", "dst = src^2", none, func(t *target, dst, src vec, _ []vec) { t.mul(dst, src, src) }},
	{"sqrt", "dst = sqrt(src)", none, func(t *target, dst, src vec, _ []vec) { t.sqrt(dst, src) }},
	{"reciprocal", "dst = 1/src", one, func(t *target, dst, src vec, temp []vec) {
		t.div(dst, t.krf(1, temp[0]), src)
	}},
	{"rsqrt", "dst = 1/sqrt(src)", rsqrtConsts, rsqrt},
	{"floor", "dst = src rounded down", none,
		func(t *target, dst, src vec, _ []vec) { t.round(down, dst, src) }},
	{"ceil", "dst = src rounded up", none,
		func(t *target, dst, src vec, _ []vec) { t.round(up, dst, src) }},
	{"rint", "dst = src rounded to the nearest integer, ties to even", none,
		func(t *target, dst, src vec, _ []vec) { t.round(nearest, dst, src) }},
	{"sign", "dst = -1, 0 or 1, NaN where src is NaN",
		func(t *target) []uint64 { return []uint64{0, t.float(1), t.float(-1)} },
		func(t *target, dst, src vec, temp []vec) {
			t.mov(temp[1], src)
			t.choose(temp[1], greater, src, t.kf(0), t.krf(1, temp[0]), dst)
			t.choose(temp[1], less, src, t.kf(0), t.krf(-1, temp[0]), dst)
			t.mov(dst, temp[1])
		}},
	{"relu", "dst = max(src, 0), NaN where src is NaN",
		func(*target) []uint64 { return []uint64{0} },
		func(t *target, dst, src vec, temp []vec) { t.max(dst, t.krf(0, temp[0]), src) }},
}
