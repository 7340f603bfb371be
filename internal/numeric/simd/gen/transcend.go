package main

// transcendental emits the functions that are approximated by polynomials, and softmax. The
// polynomials are minimax fits (Remez algorithm in extended precision).
func transcendental(t *target) {
	for _, u := range []struct {
		name, doc string
		consts    []uint64
		body      func(t *target, x vec, temp []vec)
	}{
		{"exp", "dst = e^src", expConsts(t), expBody},
		{"log", "dst = ln(src)", logConsts(t), logBody},
		{"tanh", "dst = tanh(src)", tanhConsts(t), tanhBody},
		{"sigmoid", "dst = 1/(1 + e^-src)", append(expConsts(t), signBit(t)), sigmoidBody},
		{"log1p", "dst = ln(1 + src)", logConsts(t), log1pBody},
		{"expm1", "dst = e^src - 1", expm1Consts(t), expm1Body},
		{"sin", "dst = sin(src), for arguments up to a million", trigConsts(t), sinBody},
		{"cos", "dst = cos(src), for arguments up to a million", trigConsts(t), cosBody},
	} {
		unroll := 2
		if u.name == "tanh" {
			unroll = 4 // takes 5% less time
		}
		t.function1(u.name, u.doc, u.consts, by(t, 6, 8), unroll, u.body)
	}
	t.softmax(true)
	t.softmax(false)
	const erfDoc = "dst = the error function of src"
	if t.bits == 64 {
		t.function1("erf", erfDoc, erf64Consts(t), 8, 2, erf64Body())
		return
	}
	t.function1("erf", erfDoc, erfConsts(t), 6, 2, erfBody)
	t.power()
}

// function1 emits a map of one slice whose body works in place.
func (t *target) function1(name, doc string, consts []uint64, temps, unroll int, body func(t *target, x vec, temp []vec)) {
	t.stream(stream{
		name: name, doc: doc, in: []string{"src"}, out: []string{"dst"}, consts: consts, temps: temps, unroll: unroll,
		body: func(t *target, x vars) {
			t.mov(x.v["dst"], x.v["src"])
			body(t, x.v["dst"], x.temp)
		},
	})
}

func (t *target) floats(values ...float64) []uint64 {
	var c []uint64
	for _, v := range values {
		c = append(c, t.float(v))
	}
	return c
}

// poly computes dst = the polynomial of x with the given coefficients, highest power first.
func (t *target) poly(dst, x vec, coef []float64) {
	t.mov(dst, t.kf(coef[0]))
	for _, c := range coef[1:] {
		t.horner(dst, x, t.kf(c))
	}
}

// rounder is a number that rounds a number of moderate size to an integer when added to it. The
// integer is in the low bits of the sum.
func (t *target) rounder() float64 { return by[float64](t, 3<<22, 3<<51) }

// ln 2 in two parts; multiples of the first are exact.
func ln2Hi(t *target) float64 { return by(t, 0.693359375, 0.69314718055989033019) }
func ln2Lo(t *target) float64 { return by(t, -2.12194440e-4, 5.4979230187083711747e-14) }
