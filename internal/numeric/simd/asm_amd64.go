package simd

// init adds the assembly to the kernels.
func init() {
	init32()
	init64()
	initConversions()
	initIntegers()
}

func initIntegers() {
	integers32 = integer[int32]{
		sumRows: levels[func(dst, a *int32, rows, cols int)]{sumIntRows32AVX2, sumIntRows32AVX512},
		maxRows: levels[func(dst, a *int32, rows, cols int)]{maxIntRows32AVX2, maxIntRows32AVX512},
		minRows: levels[func(dst, a *int32, rows, cols int)]{minIntRows32AVX2, minIntRows32AVX512},
		add:     levels[func(dst, a, b *int32, n int)]{addInts32AVX2, addInts32AVX512},
		sub:     levels[func(dst, a, b *int32, n int)]{subInts32AVX2, subInts32AVX512},
		mul:     levels[func(dst, a, b *int32, n int)]{mulInts32AVX2, mulInts32AVX512},
		max:     levels[func(dst, a, b *int32, n int)]{maxInts32AVX2, maxInts32AVX512},
		min:     levels[func(dst, a, b *int32, n int)]{minInts32AVX2, minInts32AVX512},
		compare: [...]levels[func(dst *bool, a, b *int32, n int)]{
			Equal:     {equalInts32AVX2, equalInts32AVX512},
			NotEqual:  {notEqualInts32AVX2, notEqualInts32AVX512},
			Less:      {lessInts32AVX2, lessInts32AVX512},
			LessEqual: {lessEqualInts32AVX2, lessEqualInts32AVX512},
		},
	}
	firstEqualInt.asm = levels[func(at *int64, x, values *int32, rows, cols int)]{firstEqualInt32AVX2, firstEqualInt32AVX512}
	lerps.slices = levels[func(dst, a, b *float32, n int, share float32)]{lerp32AVX2, lerp32AVX512}
	lerps.pixels = levels[func(dst, src *float32, places *byte, n, channels int)]{lerpPixels32AVX2, lerpPixels32AVX512}
	divisions.quotients = levels[func(dst, a, b *int32, n int)]{quotients32AVX2, quotients32AVX512}
	divisions.floorQuotients = levels[func(dst, a, b *int32, n int)]{floorQuotients32AVX2, floorQuotients32AVX512}
	divisions.remainders = levels[func(dst, a, b *int32, n int)]{remainders32AVX2, remainders32AVX512}
	divisions.floorRemainders = levels[func(dst, a, b *int32, n int)]{floorRemainders32AVX2, floorRemainders32AVX512}
	integers64 = integer[int64]{
		sumRows: levels[func(dst, a *int64, rows, cols int)]{sumIntRows64AVX2, sumIntRows64AVX512},
		add:     levels[func(dst, a, b *int64, n int)]{addInts64AVX2, addInts64AVX512},
		sub:     levels[func(dst, a, b *int64, n int)]{subInts64AVX2, subInts64AVX512},
		mul:     levels[func(dst, a, b *int64, n int)]{nil, mulInts64AVX512},
		max:     levels[func(dst, a, b *int64, n int)]{nil, maxInts64AVX512},
		min:     levels[func(dst, a, b *int64, n int)]{nil, minInts64AVX512},
		compare: [...]levels[func(dst *bool, a, b *int64, n int)]{
			Equal:     {equalInts64AVX2, equalInts64AVX512},
			NotEqual:  {notEqualInts64AVX2, notEqualInts64AVX512},
			Less:      {lessInts64AVX2, lessInts64AVX512},
			LessEqual: {lessEqualInts64AVX2, lessEqualInts64AVX512},
		},
	}
}

func initConversions() {
	fromUint8.asm = levels[func(dst *float32, src *uint8, n int)]{fromUint832AVX2, fromUint832AVX512}
	fromInt8.asm = levels[func(dst *float32, src *int8, n int)]{fromInt832AVX2, fromInt832AVX512}
	toBytes.asm = levels[func(dst *uint8, src *float32, n int)]{toBytes32AVX2, toBytes32AVX512}
	longFromUint8.asm = levels[func(dst *int64, src *uint8, n int)]{longFromUint832AVX2, longFromUint832AVX512}
	fromInt32.asm = levels[func(dst *float32, src *int32, n int)]{fromInt3232AVX2, fromInt3232AVX512}
	toInt32.asm = levels[func(dst *int32, src *float32, n int)]{toInt3232AVX2, toInt3232AVX512}
	fromHalf.asm = levels[func(dst *float32, src *uint16, n int)]{fromHalf32AVX2, fromHalf32AVX512}
	toHalf.asm = levels[func(dst *uint16, src *float32, n int)]{toHalf32AVX2, toHalf32AVX512}
	fromBFloat.asm = levels[func(dst *float32, src *uint16, n int)]{fromBFloat32AVX2, fromBFloat32AVX512}
	toBFloat.asm = levels[func(dst *uint16, src *float32, n int)]{toBFloat32AVX2, toBFloat32AVX512}
	toDouble.asm = levels[func(dst *float64, src *float32, n int)]{toDouble32AVX2, toDouble32AVX512}
	fromDouble.asm = levels[func(dst *float32, src *float64, n int)]{fromDouble32AVX2, fromDouble32AVX512}
	fromLong.asm = levels[func(dst *float32, src *int64, n int)]{nil, fromLong32AVX512}
	toLong.asm = levels[func(dst *int64, src *float32, n int)]{nil, toLong32AVX512}
	longFromInt.asm = levels[func(dst *int64, src *int32, n int)]{longFromInt32AVX2, longFromInt32AVX512}
	intFromLong.asm = levels[func(dst *int32, src *int64, n int)]{intFromLong32AVX2, intFromLong32AVX512}
	wideInt8.asm = levels[func(dst *int32, src *int8, n int)]{wideInt832AVX2, wideInt832AVX512}
	wideUint8.asm = levels[func(dst *int32, src *uint8, n int)]{wideUint832AVX2, wideUint832AVX512}
	wideInt16.asm = levels[func(dst *int32, src *int16, n int)]{wideInt1632AVX2, wideInt1632AVX512}
	wideUint16.asm = levels[func(dst *int32, src *uint16, n int)]{wideUint1632AVX2, wideUint1632AVX512}
	narrow8.asm = levels[func(dst *uint8, src *int32, n int)]{narrow832AVX2, narrow832AVX512}
	narrow16.asm = levels[func(dst *uint16, src *int32, n int)]{narrow1632AVX2, narrow1632AVX512}
	doubleFromInt.asm = levels[func(dst *float64, src *int32, n int)]{doubleFromInt32AVX2, doubleFromInt32AVX512}
	intFromDouble.asm = levels[func(dst *int32, src *float64, n int)]{intFromDouble32AVX2, intFromDouble32AVX512}
	longFromDouble.asm = levels[func(dst *int64, src *float64, n int)]{nil, longFromDouble32AVX512}
	copyRows = levels[func(dst, src *byte, dstStride, srcStride, rows, size int)]{copyRows32AVX2, copyRows32AVX512}
	reverse = levels[func(dst, src *float32, n int)]{reverse32AVX2, reverse32AVX512}
	gatherRows = levels[func(dst, src *float32, list *int64, rows, words int)]{gatherRows32AVX2, gatherRows32AVX512}
	andWords = levels[func(dst, a, b *int32, n int)]{andInts32AVX2, andInts32AVX512}
	xorWords = levels[func(dst, a, b *int32, n int)]{xorInts32AVX2, xorInts32AVX512}
	orWords = levels[func(dst, a, b *int32, n int)]{orInts32AVX2, orInts32AVX512}
	transpose8 = levels[func(dst, src *float32, dstStride, srcStride, n int)]{transpose32AVX2, transpose32AVX2}
	transposeLines32 = levels[func(dst, src *float32, dstStride, srcStride, dstStep, srcStep, blocks int)]{nil, transposeLines32AVX512}
	transposeLines64 = levels[func(dst, src *float64, dstStride, srcStride, dstStep, srcStep, blocks int)]{nil, transposeLines64AVX512}
	transposeHalves8 = levels[func(dst, src *uint16, dstStride, srcStride, n int)]{transposeHalves32AVX2, transposeHalves32AVX2}
	blend32 = levels[func(dst, a, b *float32, cond *bool, n int)]{blend32AVX2, blend32AVX512}
	blend64 = levels[func(dst, a, b *float64, cond *bool, n int)]{blend64AVX2, blend64AVX512}
}

func init32() {
	neg.f32.asm = levels[func(dst, src *float32, n int)]{neg32AVX2, neg32AVX512}
	abs.f32.asm = levels[func(dst, src *float32, n int)]{abs32AVX2, abs32AVX512}
	square.f32.asm = levels[func(dst, src *float32, n int)]{square32AVX2, square32AVX512}
	sqrt.f32.asm = levels[func(dst, src *float32, n int)]{sqrt32AVX2, sqrt32AVX512}
	rsqrt.f32.asm = levels[func(dst, src *float32, n int)]{rsqrt32AVX2, rsqrt32AVX512}
	reciprocal.f32.asm = levels[func(dst, src *float32, n int)]{reciprocal32AVX2, reciprocal32AVX512}
	relu.f32.asm = levels[func(dst, src *float32, n int)]{relu32AVX2, relu32AVX512}
	exp.f32.asm = levels[func(dst, src *float32, n int)]{exp32AVX2, exp32AVX512}
	log.f32.asm = levels[func(dst, src *float32, n int)]{log32AVX2, log32AVX512}
	tanh.f32.asm = levels[func(dst, src *float32, n int)]{tanh32AVX2, tanh32AVX512}
	sigmoid.f32.asm = levels[func(dst, src *float32, n int)]{sigmoid32AVX2, sigmoid32AVX512}
	log1p.f32.asm = levels[func(dst, src *float32, n int)]{log1p32AVX2, log1p32AVX512}
	expm1.f32.asm = levels[func(dst, src *float32, n int)]{expm132AVX2, expm132AVX512}
	erf.f32.asm = levels[func(dst, src *float32, n int)]{erf32AVX2, erf32AVX512}
	sin.f32.asm = levels[func(dst, src *float32, n int)]{sin32AVX2, sin32AVX512}
	cos.f32.asm = levels[func(dst, src *float32, n int)]{cos32AVX2, cos32AVX512}
	floor.f32.asm = levels[func(dst, src *float32, n int)]{floor32AVX2, floor32AVX512}
	ceil.f32.asm = levels[func(dst, src *float32, n int)]{ceil32AVX2, ceil32AVX512}
	rint.f32.asm = levels[func(dst, src *float32, n int)]{rint32AVX2, rint32AVX512}
	sign.f32.asm = levels[func(dst, src *float32, n int)]{sign32AVX2, sign32AVX512}
	add.f32.asm = levels[func(dst, a, b *float32, n int)]{add32AVX2, add32AVX512}
	sub.f32.asm = levels[func(dst, a, b *float32, n int)]{sub32AVX2, sub32AVX512}
	mul.f32.asm = levels[func(dst, a, b *float32, n int)]{mul32AVX2, mul32AVX512}
	div.f32.asm = levels[func(dst, a, b *float32, n int)]{div32AVX2, div32AVX512}
	maximum.f32.asm = levels[func(dst, a, b *float32, n int)]{max32AVX2, max32AVX512}
	minimum.f32.asm = levels[func(dst, a, b *float32, n int)]{min32AVX2, min32AVX512}
	squaredDifference.f32.asm = levels[func(dst, a, b *float32, n int)]{squaredDifference32AVX2, squaredDifference32AVX512}
	reluGrad.f32.asm = levels[func(dst, a, b *float32, n int)]{reluGrad32AVX2, reluGrad32AVX512}
	tanhGrad.f32.asm = levels[func(dst, a, b *float32, n int)]{tanhGrad32AVX2, tanhGrad32AVX512}
	sigmoidGrad.f32.asm = levels[func(dst, a, b *float32, n int)]{sigmoidGrad32AVX2, sigmoidGrad32AVX512}
	pow.f32.asm = levels[func(dst, a, b *float32, n int)]{pow32AVX2, pow32AVX512}
	divNoNaN.f32.asm = levels[func(dst, a, b *float32, n int)]{divNoNaN32AVX2, divNoNaN32AVX512}
	mulNoNaN.f32.asm = levels[func(dst, a, b *float32, n int)]{mulNoNaN32AVX2, mulNoNaN32AVX512}
	addScalar.f32.asm = levels[func(dst, a *float32, n int, b float32)]{addScalar32AVX2, addScalar32AVX512}
	mulScalar.f32.asm = levels[func(dst, a *float32, n int, b float32)]{mulScalar32AVX2, mulScalar32AVX512}
	divScalar.f32.asm = levels[func(dst, a *float32, n int, b float32)]{divScalar32AVX2, divScalar32AVX512}
	maxScalar.f32.asm = levels[func(dst, a *float32, n int, b float32)]{maxScalar32AVX2, maxScalar32AVX512}
	minScalar.f32.asm = levels[func(dst, a *float32, n int, b float32)]{minScalar32AVX2, minScalar32AVX512}
	scalarSub.f32.asm = levels[func(dst, a *float32, n int, b float32)]{scalarSub32AVX2, scalarSub32AVX512}
	scalarDiv.f32.asm = levels[func(dst, a *float32, n int, b float32)]{scalarDiv32AVX2, scalarDiv32AVX512}

	comparing.f32 = comparison[float32]{
		vector: [...]levels[func(dst *bool, a, b *float32, n int)]{
			Equal:     {equal32AVX2, equal32AVX512},
			NotEqual:  {notEqual32AVX2, notEqual32AVX512},
			Less:      {less32AVX2, less32AVX512},
			LessEqual: {lessEqual32AVX2, lessEqual32AVX512},
		},
		scalar: [...]levels[func(dst *bool, a *float32, n int, b float32)]{
			Equal:        {equalScalar32AVX2, equalScalar32AVX512},
			NotEqual:     {notEqualScalar32AVX2, notEqualScalar32AVX512},
			Less:         {lessScalar32AVX2, lessScalar32AVX512},
			LessEqual:    {lessEqualScalar32AVX2, lessEqualScalar32AVX512},
			Greater:      {greaterScalar32AVX2, greaterScalar32AVX512},
			GreaterEqual: {greaterEqualScalar32AVX2, greaterEqualScalar32AVX512},
		},
		magnitude: [...]levels[func(dst *bool, a *float32, n int, b float32)]{
			Equal: {equalMagnitude32AVX2, equalMagnitude32AVX512},
			Less:  {lessMagnitude32AVX2, lessMagnitude32AVX512},
		},
	}
	linears.f32 = linear[float32]{
		axpy:          levels[func(y, x *float32, n int, a float32)]{axpy32AVX2, axpy32AVX512},
		clamp:         levels[func(dst, src *float32, n int, low, high float32)]{clamp32AVX2, clamp32AVX512},
		add4:          levels[func(dst, a, b, c, d *float32, n int)]{add432AVX2, add432AVX512},
		leaky:         levels[func(dst, x, by *float32, n int, alpha float32)]{leaky32AVX2, leaky32AVX512},
		selectLess:    levels[func(dst, x, a, b *float32, n int, bound float32)]{selectLess32AVX2, selectLess32AVX512},
		selectGreater: levels[func(dst, x, a, b *float32, n int, bound float32)]{selectGreater32AVX2, selectGreater32AVX512},
		fill:          levels[func(dst *float32, n int, v float32)]{fill32AVX2, fill32AVX512},
		axpby:         levels[func(dst, x, y *float32, n int, a, b float32)]{axpby32AVX2, axpby32AVX512},
	}
	sum.f32.asm = levels[func(dst, a *float32, rows, cols int)]{sumRows32AVX2, sumRows32AVX512}
	product.f32.asm = levels[func(dst, a *float32, rows, cols int)]{prodRows32AVX2, prodRows32AVX512}
	largest.f32.asm = levels[func(dst, a *float32, rows, cols int)]{maxRows32AVX2, maxRows32AVX512}
	least.f32.asm = levels[func(dst, a *float32, rows, cols int)]{minRows32AVX2, minRows32AVX512}
	firstEqual.f32.asm = levels[func(at *int64, x, values *float32, rows, cols int)]{firstEqual32AVX2, firstEqual32AVX512}
	dot.f32.asm = levels[func(a, b *float32, n int) float32]{dot32AVX2, dot32AVX512}
	matvecs.f32 = matvec[float32]{
		addRows: levels[func(y, x *float32, stride int, coef *float32, fours, n int)]{addRows32AVX2, addRows32AVX512},
		dotRows: levels[func(dst, x *float32, stride int, y *float32, fours, n int)]{dotRows32AVX2, dotRows32AVX512},

		addListed: levels[func(y, x *float32, list *int64, stride int, coef *float32, rows, n int)]{addListed32AVX2, addListed32AVX512},
	}
	columns.f32 = columnKernels[float32]{
		sum:        levels[func(acc, x *float32, stride, rows, cols int)]{sumColumns32AVX2, sumColumns32AVX512},
		max:        levels[func(acc, x *float32, stride, rows, cols int)]{maxColumns32AVX2, maxColumns32AVX512},
		min:        levels[func(acc, x *float32, stride, rows, cols int)]{minColumns32AVX2, minColumns32AVX512},
		add:        levels[func(dst, x, v *float32, stride, rows, cols int)]{addRow32AVX2, addRow32AVX512},
		mul:        levels[func(dst, x, v *float32, stride, rows, cols int)]{mulRow32AVX2, mulRow32AVX512},
		subColumns: levels[func(dst, x, a, b *float32, rows, cols int)]{subColumns32AVX2, subColumns32AVX512},
	}
	update.f32 = updateKernels[float32]{
		momentum:         levels[func(w, acc, g *float32, n int, p *[2]float32)]{momentum32AVX2, momentum32AVX512},
		momentumNesterov: levels[func(w, acc, g *float32, n int, p *[2]float32)]{momentumNesterov32AVX2, momentumNesterov32AVX512},
		adagrad:          levels[func(w, acc, g *float32, n int, p *[3]float32)]{adagrad32AVX2, adagrad32AVX512},
		adagradRoot:      levels[func(w, acc, g *float32, n int, p *[3]float32)]{adagradRoot32AVX2, adagradRoot32AVX512},
		adam:             levels[func(w, m, v, g *float32, n int, p *[4]float32)]{adam32AVX2, adam32AVX512},
		adamNesterov:     levels[func(w, m, v, g *float32, n int, p *[4]float32)]{adamNesterov32AVX2, adamNesterov32AVX512},
		ftrl:             levels[func(w, acc, linear, g *float32, n int, p *[5]float32)]{ftrl32AVX2, ftrl32AVX512},
		rmsProp:          levels[func(w, ms, mom, g *float32, n int, p *[4]float32)]{rmsProp32AVX2, rmsProp32AVX512},
		rmsPropCentered:  levels[func(w, ms, mom, mg, g *float32, n int, p *[4]float32)]{rmsPropCentered32AVX2, rmsPropCentered32AVX512},
	}
	softmaxAsm.f32 = softmaxKernels[float32]{
		rows: levels[func(dst, src *float32, rows, cols int, largest, sum *float32)]{softmaxRows32AVX2, softmaxRows32AVX512},
		sums: levels[func(src *float32, rows, cols int, largest, sum *float32)]{expSumRows32AVX2, expSumRows32AVX512},
	}
}

func init64() {
	neg.f64.asm = levels[func(dst, src *float64, n int)]{neg64AVX2, neg64AVX512}
	abs.f64.asm = levels[func(dst, src *float64, n int)]{abs64AVX2, abs64AVX512}
	square.f64.asm = levels[func(dst, src *float64, n int)]{square64AVX2, square64AVX512}
	sqrt.f64.asm = levels[func(dst, src *float64, n int)]{sqrt64AVX2, sqrt64AVX512}
	rsqrt.f64.asm = levels[func(dst, src *float64, n int)]{rsqrt64AVX2, rsqrt64AVX512}
	exp.f64.asm = levels[func(dst, src *float64, n int)]{exp64AVX2, exp64AVX512}
	log.f64.asm = levels[func(dst, src *float64, n int)]{log64AVX2, log64AVX512}
	tanh.f64.asm = levels[func(dst, src *float64, n int)]{tanh64AVX2, tanh64AVX512}
	sigmoid.f64.asm = levels[func(dst, src *float64, n int)]{sigmoid64AVX2, sigmoid64AVX512}
	log1p.f64.asm = levels[func(dst, src *float64, n int)]{log1p64AVX2, log1p64AVX512}
	expm1.f64.asm = levels[func(dst, src *float64, n int)]{expm164AVX2, expm164AVX512}
	erf.f64.asm = levels[func(dst, src *float64, n int)]{erf64AVX2, erf64AVX512}
	sin.f64.asm = levels[func(dst, src *float64, n int)]{sin64AVX2, sin64AVX512}
	cos.f64.asm = levels[func(dst, src *float64, n int)]{cos64AVX2, cos64AVX512}
	reciprocal.f64.asm = levels[func(dst, src *float64, n int)]{reciprocal64AVX2, reciprocal64AVX512}
	relu.f64.asm = levels[func(dst, src *float64, n int)]{relu64AVX2, relu64AVX512}
	floor.f64.asm = levels[func(dst, src *float64, n int)]{floor64AVX2, floor64AVX512}
	ceil.f64.asm = levels[func(dst, src *float64, n int)]{ceil64AVX2, ceil64AVX512}
	rint.f64.asm = levels[func(dst, src *float64, n int)]{rint64AVX2, rint64AVX512}
	sign.f64.asm = levels[func(dst, src *float64, n int)]{sign64AVX2, sign64AVX512}
	add.f64.asm = levels[func(dst, a, b *float64, n int)]{add64AVX2, add64AVX512}
	sub.f64.asm = levels[func(dst, a, b *float64, n int)]{sub64AVX2, sub64AVX512}
	mul.f64.asm = levels[func(dst, a, b *float64, n int)]{mul64AVX2, mul64AVX512}
	div.f64.asm = levels[func(dst, a, b *float64, n int)]{div64AVX2, div64AVX512}
	maximum.f64.asm = levels[func(dst, a, b *float64, n int)]{max64AVX2, max64AVX512}
	minimum.f64.asm = levels[func(dst, a, b *float64, n int)]{min64AVX2, min64AVX512}
	squaredDifference.f64.asm = levels[func(dst, a, b *float64, n int)]{squaredDifference64AVX2, squaredDifference64AVX512}
	reluGrad.f64.asm = levels[func(dst, a, b *float64, n int)]{reluGrad64AVX2, reluGrad64AVX512}
	tanhGrad.f64.asm = levels[func(dst, a, b *float64, n int)]{tanhGrad64AVX2, tanhGrad64AVX512}
	sigmoidGrad.f64.asm = levels[func(dst, a, b *float64, n int)]{sigmoidGrad64AVX2, sigmoidGrad64AVX512}
	divNoNaN.f64.asm = levels[func(dst, a, b *float64, n int)]{divNoNaN64AVX2, divNoNaN64AVX512}
	mulNoNaN.f64.asm = levels[func(dst, a, b *float64, n int)]{mulNoNaN64AVX2, mulNoNaN64AVX512}
	addScalar.f64.asm = levels[func(dst, a *float64, n int, b float64)]{addScalar64AVX2, addScalar64AVX512}
	mulScalar.f64.asm = levels[func(dst, a *float64, n int, b float64)]{mulScalar64AVX2, mulScalar64AVX512}
	divScalar.f64.asm = levels[func(dst, a *float64, n int, b float64)]{divScalar64AVX2, divScalar64AVX512}
	maxScalar.f64.asm = levels[func(dst, a *float64, n int, b float64)]{maxScalar64AVX2, maxScalar64AVX512}
	minScalar.f64.asm = levels[func(dst, a *float64, n int, b float64)]{minScalar64AVX2, minScalar64AVX512}
	scalarSub.f64.asm = levels[func(dst, a *float64, n int, b float64)]{scalarSub64AVX2, scalarSub64AVX512}
	scalarDiv.f64.asm = levels[func(dst, a *float64, n int, b float64)]{scalarDiv64AVX2, scalarDiv64AVX512}

	comparing.f64 = comparison[float64]{
		vector: [...]levels[func(dst *bool, a, b *float64, n int)]{
			Equal:     {equal64AVX2, equal64AVX512},
			NotEqual:  {notEqual64AVX2, notEqual64AVX512},
			Less:      {less64AVX2, less64AVX512},
			LessEqual: {lessEqual64AVX2, lessEqual64AVX512},
		},
		scalar: [...]levels[func(dst *bool, a *float64, n int, b float64)]{
			Equal:        {equalScalar64AVX2, equalScalar64AVX512},
			NotEqual:     {notEqualScalar64AVX2, notEqualScalar64AVX512},
			Less:         {lessScalar64AVX2, lessScalar64AVX512},
			LessEqual:    {lessEqualScalar64AVX2, lessEqualScalar64AVX512},
			Greater:      {greaterScalar64AVX2, greaterScalar64AVX512},
			GreaterEqual: {greaterEqualScalar64AVX2, greaterEqualScalar64AVX512},
		},
		magnitude: [...]levels[func(dst *bool, a *float64, n int, b float64)]{
			Equal: {equalMagnitude64AVX2, equalMagnitude64AVX512},
			Less:  {lessMagnitude64AVX2, lessMagnitude64AVX512},
		},
	}
	linears.f64 = linear[float64]{
		axpy:          levels[func(y, x *float64, n int, a float64)]{axpy64AVX2, axpy64AVX512},
		clamp:         levels[func(dst, src *float64, n int, low, high float64)]{clamp64AVX2, clamp64AVX512},
		add4:          levels[func(dst, a, b, c, d *float64, n int)]{add464AVX2, add464AVX512},
		leaky:         levels[func(dst, x, by *float64, n int, alpha float64)]{leaky64AVX2, leaky64AVX512},
		selectLess:    levels[func(dst, x, a, b *float64, n int, bound float64)]{selectLess64AVX2, selectLess64AVX512},
		selectGreater: levels[func(dst, x, a, b *float64, n int, bound float64)]{selectGreater64AVX2, selectGreater64AVX512},
		fill:          levels[func(dst *float64, n int, v float64)]{fill64AVX2, fill64AVX512},
		axpby:         levels[func(dst, x, y *float64, n int, a, b float64)]{axpby64AVX2, axpby64AVX512},
	}
	sum.f64.asm = levels[func(dst, a *float64, rows, cols int)]{sumRows64AVX2, sumRows64AVX512}
	product.f64.asm = levels[func(dst, a *float64, rows, cols int)]{prodRows64AVX2, prodRows64AVX512}
	largest.f64.asm = levels[func(dst, a *float64, rows, cols int)]{maxRows64AVX2, maxRows64AVX512}
	least.f64.asm = levels[func(dst, a *float64, rows, cols int)]{minRows64AVX2, minRows64AVX512}
	firstEqual.f64.asm = levels[func(at *int64, x, values *float64, rows, cols int)]{firstEqual64AVX2, firstEqual64AVX512}
	dot.f64.asm = levels[func(a, b *float64, n int) float64]{dot64AVX2, dot64AVX512}
	matvecs.f64 = matvec[float64]{
		addRows: levels[func(y, x *float64, stride int, coef *float64, fours, n int)]{addRows64AVX2, addRows64AVX512},
		dotRows: levels[func(dst, x *float64, stride int, y *float64, fours, n int)]{dotRows64AVX2, dotRows64AVX512},

		addListed: levels[func(y, x *float64, list *int64, stride int, coef *float64, rows, n int)]{addListed64AVX2, addListed64AVX512},
	}
	columns.f64 = columnKernels[float64]{
		sum:        levels[func(acc, x *float64, stride, rows, cols int)]{sumColumns64AVX2, sumColumns64AVX512},
		max:        levels[func(acc, x *float64, stride, rows, cols int)]{maxColumns64AVX2, maxColumns64AVX512},
		min:        levels[func(acc, x *float64, stride, rows, cols int)]{minColumns64AVX2, minColumns64AVX512},
		add:        levels[func(dst, x, v *float64, stride, rows, cols int)]{addRow64AVX2, addRow64AVX512},
		mul:        levels[func(dst, x, v *float64, stride, rows, cols int)]{mulRow64AVX2, mulRow64AVX512},
		subColumns: levels[func(dst, x, a, b *float64, rows, cols int)]{subColumns64AVX2, subColumns64AVX512},
	}
	update.f64 = updateKernels[float64]{
		momentum:         levels[func(w, acc, g *float64, n int, p *[2]float64)]{momentum64AVX2, momentum64AVX512},
		momentumNesterov: levels[func(w, acc, g *float64, n int, p *[2]float64)]{momentumNesterov64AVX2, momentumNesterov64AVX512},
		adagrad:          levels[func(w, acc, g *float64, n int, p *[3]float64)]{adagrad64AVX2, adagrad64AVX512},
		adagradRoot:      levels[func(w, acc, g *float64, n int, p *[3]float64)]{adagradRoot64AVX2, adagradRoot64AVX512},
		adam:             levels[func(w, m, v, g *float64, n int, p *[4]float64)]{adam64AVX2, adam64AVX512},
		adamNesterov:     levels[func(w, m, v, g *float64, n int, p *[4]float64)]{adamNesterov64AVX2, adamNesterov64AVX512},
		ftrl:             levels[func(w, acc, linear, g *float64, n int, p *[5]float64)]{ftrl64AVX2, ftrl64AVX512},
		rmsProp:          levels[func(w, ms, mom, g *float64, n int, p *[4]float64)]{rmsProp64AVX2, rmsProp64AVX512},
		rmsPropCentered:  levels[func(w, ms, mom, mg, g *float64, n int, p *[4]float64)]{rmsPropCentered64AVX2, rmsPropCentered64AVX512},
	}
	softmaxAsm.f64 = softmaxKernels[float64]{
		rows: levels[func(dst, src *float64, rows, cols int, largest, sum *float64)]{softmaxRows64AVX2, softmaxRows64AVX512},
		sums: levels[func(src *float64, rows, cols int, largest, sum *float64)]{expSumRows64AVX2, expSumRows64AVX512},
	}
}
