package main

import (
	"fmt"
	"go/format"
	"slices"
	"strings"
)

// variables maps the kernels of package simd, without element size and instruction set, to the
// variables that hold them by level. # represents the element size in bits.
var variables = map[string]string{
	"neg": "neg.f#.asm", "abs": "abs.f#.asm", "square": "square.f#.asm", "sqrt": "sqrt.f#.asm", "rsqrt": "rsqrt.f#.asm",
	"reciprocal": "reciprocal.f#.asm", "relu": "relu.f#.asm", "exp": "exp.f#.asm", "log": "log.f#.asm", "tanh": "tanh.f#.asm",
	"sigmoid": "sigmoid.f#.asm", "log1p": "log1p.f#.asm", "expm1": "expm1.f#.asm", "erf": "erf.f#.asm", "sin": "sin.f#.asm",
	"cos": "cos.f#.asm", "floor": "floor.f#.asm", "ceil": "ceil.f#.asm", "rint": "rint.f#.asm", "sign": "sign.f#.asm",

	"add": "add.f#.asm", "sub": "sub.f#.asm", "mul": "mul.f#.asm", "div": "div.f#.asm", "max": "maximum.f#.asm",
	"min": "minimum.f#.asm", "squaredDifference": "squaredDifference.f#.asm", "reluGrad": "reluGrad.f#.asm",
	"tanhGrad": "tanhGrad.f#.asm", "sigmoidGrad": "sigmoidGrad.f#.asm", "pow": "pow.f#.asm", "divNoNaN": "divNoNaN.f#.asm",
	"mulNoNaN": "mulNoNaN.f#.asm",

	"addScalar": "addScalar.f#.asm", "mulScalar": "mulScalar.f#.asm", "divScalar": "divScalar.f#.asm",
	"maxScalar": "maxScalar.f#.asm", "minScalar": "minScalar.f#.asm", "scalarSub": "scalarSub.f#.asm",
	"scalarDiv": "scalarDiv.f#.asm",

	"equal": "comparing.f#.vector[Equal]", "notEqual": "comparing.f#.vector[NotEqual]",
	"less": "comparing.f#.vector[Less]", "lessEqual": "comparing.f#.vector[LessEqual]",
	"equalScalar": "comparing.f#.scalar[Equal]", "notEqualScalar": "comparing.f#.scalar[NotEqual]",
	"lessScalar": "comparing.f#.scalar[Less]", "lessEqualScalar": "comparing.f#.scalar[LessEqual]",
	"greaterScalar": "comparing.f#.scalar[Greater]", "greaterEqualScalar": "comparing.f#.scalar[GreaterEqual]",
	"equalMagnitude": "comparing.f#.magnitude[Equal]", "lessMagnitude": "comparing.f#.magnitude[Less]",
	"blend": "blend#",

	"axpy": "linears.f#.axpy", "axpby": "linears.f#.axpby", "clamp": "linears.f#.clamp", "add4": "linears.f#.add4",
	"leaky": "linears.f#.leaky", "selectLess": "linears.f#.selectLess", "selectGreater": "linears.f#.selectGreater",
	"fill": "linears.f#.fill",

	"sumRows": "sum.f#.asm", "prodRows": "product.f#.asm", "maxRows": "largest.f#.asm", "minRows": "least.f#.asm",
	"firstEqual": "firstEqual.f#.asm", "firstEqualInt": "firstEqualInt.asm", "dot": "dot.f#.asm",
	"addRows": "matvecs.f#.addRows", "dotRows": "matvecs.f#.dotRows", "addListed": "matvecs.f#.addListed",
	"softmaxRows": "softmaxAsm.f#.rows", "expSumRows": "softmaxAsm.f#.sums",

	"sumColumns": "columns.f#.sum", "maxColumns": "columns.f#.max", "minColumns": "columns.f#.min",
	"addRow": "columns.f#.add", "mulRow": "columns.f#.mul", "subColumns": "columns.f#.subColumns",
	"moments": "columnPasses.moments", "products": "columnPasses.products", "normalize": "columnPasses.normalize",
	"normalizeGrad": "columnPasses.normalizeGrad", "mulRows": "neighbours.mulRows", "windowSums": "neighbours.windowSums",

	"momentum": "update.f#.momentum", "momentumNesterov": "update.f#.momentumNesterov", "adagrad": "update.f#.adagrad",
	"adagradRoot": "update.f#.adagradRoot", "adam": "update.f#.adam", "adamNesterov": "update.f#.adamNesterov",
	"ftrl": "update.f#.ftrl", "rmsProp": "update.f#.rmsProp", "rmsPropCentered": "update.f#.rmsPropCentered",

	"sumIntRows": "integers#.sumRows", "maxIntRows": "integers#.maxRows", "minIntRows": "integers#.minRows",
	"addInts": "integers#.add", "subInts": "integers#.sub", "mulInts": "integers#.mul", "maxInts": "integers#.max",
	"minInts": "integers#.min", "equalInts": "integers#.compare[Equal]", "notEqualInts": "integers#.compare[NotEqual]",
	"lessInts": "integers#.compare[Less]", "lessEqualInts": "integers#.compare[LessEqual]",
	"quotients": "divisions.quotients", "floorQuotients": "divisions.floorQuotients", "remainders": "divisions.remainders",
	"floorRemainders": "divisions.floorRemainders", "andInts": "andWords", "xorInts": "xorWords", "orInts": "orWords",

	"fromUint8": "fromUint8.asm", "fromInt8": "fromInt8.asm", "toBytes": "toBytes.asm", "longFromUint8": "longFromUint8.asm",
	"fromInt32": "fromInt32.asm", "toInt32": "toInt32.asm", "fromHalf": "fromHalf.asm", "toHalf": "toHalf.asm",
	"fromBFloat": "fromBFloat.asm", "toBFloat": "toBFloat.asm", "toDouble": "toDouble.asm", "fromDouble": "fromDouble.asm",
	"fromLong": "fromLong.asm", "toLong": "toLong.asm", "longFromInt": "longFromInt.asm", "intFromLong": "intFromLong.asm",
	"wideInt8": "wideInt8.asm", "wideUint8": "wideUint8.asm", "wideInt16": "wideInt16.asm", "wideUint16": "wideUint16.asm",
	"narrow8": "narrow8.asm", "narrow16": "narrow16.asm", "doubleFromInt": "doubleFromInt.asm",
	"intFromDouble": "intFromDouble.asm", "longFromDouble": "longFromDouble.asm",

	"copyRows": "copyRows", "reverse": "reverse", "gatherRows": "gatherRows", "scatterRows": "scatterRows",
	"addListedRows": "scatterAdd#", "lerp": "lerps.slices", "lerpPixels": "lerps.pixels", "transpose": "transpose8",
	"transposeHalves": "transposeHalves8", "transposeLines": "transposeLines#",
}

// wiring returns a Go file of package simd that stores the given functions in its variables. If a
// kernel has no AVX-512 function, the AVX2 function replaces it.
func wiring(functions []string) ([]byte, error) {
	var b strings.Builder
	fmt.Fprint(&b, "// Code generated by internal/numeric/simd/gen. DO NOT EDIT.\n\npackage simd\n\n")
	fmt.Fprint(&b, "func byLevel[F any](avx2, avx512 F) levels[F] { return levels[F]{avx2, avx512} }\n\nfunc init() {\n")
	done := map[string]bool{}
	for _, f := range functions {
		stem := strings.TrimSuffix(strings.TrimSuffix(f, avx2.suffix()), avx512.suffix())
		if done[stem] {
			continue
		}
		done[stem] = true
		name, bits := stem[:len(stem)-2], stem[len(stem)-2:]
		variable, ok := variables[name]
		if !ok {
			return nil, fmt.Errorf("no variable for %s", f)
		}
		low, high := "nil", stem+avx512.suffix()
		if slices.Contains(functions, stem+avx2.suffix()) {
			low = stem + avx2.suffix()
		}
		if !slices.Contains(functions, high) {
			high = low
		}
		fmt.Fprintf(&b, "%s = byLevel(%s, %s)\n", strings.ReplaceAll(variable, "#", bits), low, high)
	}
	fmt.Fprint(&b, "}\n")
	return format.Source([]byte(b.String()))
}
