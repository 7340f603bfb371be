package simd

import (
	"math"
	"math/big"
	"sync"
)

// Reference functions with more precision than float64: correct to about 200 bits for arguments of
// moderate size.

const exactBits = 300

func newExact(x float64) *big.Float    { return new(big.Float).SetPrec(exactBits).SetFloat64(x) }
func exactZero() *big.Float            { return new(big.Float).SetPrec(exactBits) }
func plus(a, b *big.Float) *big.Float  { return exactZero().Add(a, b) }
func less(a, b *big.Float) *big.Float  { return exactZero().Sub(a, b) }
func times(a, b *big.Float) *big.Float { return exactZero().Mul(a, b) }
func over(a, b *big.Float) *big.Float  { return exactZero().Quo(a, b) }

// tiny reports whether a term is too small to change a sum.
func tiny(term, sum *big.Float) bool {
	return term.Sign() == 0 || sum.Sign() != 0 && term.MantExp(nil) < sum.MantExp(nil)-exactBits
}

// atanhSeries returns the sum of x^(2k+1)/(2k+1). With alternating signs it is the inverse tangent.
func atanhSeries(x *big.Float, alternate bool) *big.Float {
	sum, power, square := exactZero(), x, times(x, x)
	if alternate {
		square.Neg(square)
	}
	for k := 1; ; k += 2 {
		term := over(power, newExact(float64(k)))
		if sum = plus(sum, term); tiny(term, sum) {
			return sum
		}
		power = times(power, square)
	}
}

var exactLn2 = sync.OnceValue(func() *big.Float { // 2*atanh(1/3)
	return times(newExact(2), atanhSeries(over(newExact(1), newExact(3)), false))
})

var exactPi = sync.OnceValue(func() *big.Float { // 16*atan(1/5) - 4*atan(1/239)
	a, b := atanhSeries(over(newExact(1), newExact(5)), true), atanhSeries(over(newExact(1), newExact(239)), true)
	return less(times(newExact(16), a), times(newExact(4), b))
})

// exactExp returns e^x.
func exactExp(x *big.Float) *big.Float {
	f, _ := x.Float64()
	n := math.Round(f / math.Ln2)
	const halvings = 16
	r := less(x, times(newExact(n), exactLn2()))
	r.SetMantExp(r, -halvings)
	sum, term := newExact(1), newExact(1)
	for k := 1; !tiny(term, sum); k++ {
		term = over(times(term, r), newExact(float64(k)))
		sum = plus(sum, term)
	}
	for range halvings {
		sum = times(sum, sum)
	}
	return sum.SetMantExp(sum, int(n))
}

// exactLog returns the natural logarithm of a positive number 2^e*m as e*ln 2 +
// 2*atanh((m-1)/(m+1)).
func exactLog(x *big.Float) *big.Float {
	m := exactZero()
	e := x.MantExp(m)
	if f, _ := m.Float64(); f < math.Sqrt2/2 {
		m.SetMantExp(m, 1)
		e--
	}
	s := over(less(m, newExact(1)), plus(m, newExact(1)))
	return plus(times(newExact(float64(e)), exactLn2()), times(newExact(2), atanhSeries(s, false)))
}

func exactTanh(x *big.Float) *big.Float {
	e := exactExp(times(newExact(2), x))
	return over(less(e, newExact(1)), plus(e, newExact(1)))
}

func exactSigmoid(x *big.Float) *big.Float {
	return over(newExact(1), plus(newExact(1), exactExp(exactZero().Neg(x))))
}

func exactLog1p(x *big.Float) *big.Float { return exactLog(plus(x, newExact(1))) }
func exactExpm1(x *big.Float) *big.Float { return less(exactExp(x), newExact(1)) }

// exactSin returns the sine of x + quarters*pi/2.
func exactSin(x *big.Float, quarters int) *big.Float {
	half := over(exactPi(), newExact(2))
	f, _ := over(x, half).Float64()
	n := math.Round(f)
	r := less(x, times(newExact(n), half))
	square := times(r, r)
	square.Neg(square)
	term, first := r, 1
	if turn := int(n) + quarters; turn%2 != 0 {
		term, first = newExact(1), 0
	}
	sum := term
	for k := first + 1; !tiny(term, sum); k += 2 {
		term = over(times(term, square), newExact(float64(k*(k+1))))
		sum = plus(sum, term)
	}
	if turn := ((int(n)+quarters)%4 + 4) % 4; turn >= 2 {
		sum.Neg(sum)
	}
	return sum
}

// exactErf returns the error function by its power series, for arguments up to 7.
func exactErf(x *big.Float) *big.Float {
	square := times(x, x)
	square.Neg(square)
	sum, power := x, x
	for k := 1; ; k++ {
		power = over(times(power, square), newExact(float64(k)))
		term := over(power, newExact(float64(2*k+1)))
		if sum = plus(sum, term); tiny(term, sum) {
			break
		}
	}
	return over(times(newExact(2), sum), exactZero().Sqrt(exactPi()))
}

func exactRsqrt(x *big.Float) *big.Float { return over(newExact(1), exactZero().Sqrt(x)) }

// exactPow returns x^y for positive x.
func exactPow(x, y *big.Float) *big.Float { return exactExp(times(y, exactLog(x))) }
