package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/status"
)

const (
	shortTime = 3 * time.Second // the time of the steps of endless
	endTime   = 5 * time.Second // the time after which their sessions must be closed
)

// endless runs a node y that needs much time and little memory. It has to end with its step: the
// session cannot be closed before.
func endless(name, text string) probe {
	return probe{name: "endless-" + name, codes: []status.Code{status.DeadlineExceeded}, run: func(c *client) error {
		handle, err := c.session(text)
		if err != nil {
			return err
		}
		begin := time.Now()
		err = c.step(handle, &pb.RunOptions{TimeoutInMs: shortTime.Milliseconds()}, "y")
		if took := time.Since(begin); took > shortTime+endTime {
			return fmt.Errorf("a step with %v took %v", shortTime, took)
		}
		ctx, cancel := context.WithTimeout(c.ctx, endTime)
		defer cancel()
		if _, closeErr := c.master.CloseSession(ctx, &pb.CloseSessionRequest{SessionHandle: handle}); closeErr != nil {
			return fmt.Errorf("the node goes on, so the session was not closed within %v", endTime)
		}
		return err
	}}
}

// matrix is text for a matrix of n rows, e.
func matrix(n int) string {
	return hidden("n", fmt.Sprintf("int32[2]{%d, %d}", n, n), "[2]") + "e = RandomUniform(n) dtype=float\n"
}

var endlessProbes = []probe{
	endless("loop", loop("i", "")),
	endless("poisson", hidden("n", "int32[1]{100000000}", "[1]")+hidden("r", "double[]{1e300}", "[]")+"y = RandomPoissonV2(n, r) dtype=int32\n"),
	endless("shuffle", hidden("at", "int64[]{1}", "[]")+hidden("seed", "int64[3]{1, 2, 3}", "[3]")+hidden("max", "int64[]{4611686018427387904}", "[]")+
		fillOf("at", 100<<20, "many")+"y = RandomIndexShuffle(many, seed, max) rounds=1024\n"),
	endless("search", doubledTo(29)+"p = Const() value=string[]{\"(x{0,300})*b\"}\ny = RegexFullMatch(s29, p)\n"),
	endless("search-each", doubledTo(20)+"p = Const() value=string[]{\"x*b|x\"}\nr = Const() value=string[]{\"\"}\ny = RegexReplace(s20, p, r) replace_global=true\n"),
	endless("n-grams", fill("string[]{\"\"}", 32000, "e")+"n = Const() value=int64[2]{0, 32000}\ny = StringNGrams(e, n) separator=\"\" left_pad=\"\" right_pad=\"\" ngram_widths=[16000] pad_width=0 preserve_short_sequences=false\n"),
	endless("svd", matrix(3000)+"y = Svd(e)\n"),
	endless("eigenvalues", matrix(3000)+"y = SelfAdjointEigV2(e)\n"),
	endless("logarithm", matrix(2000)+"c = Cast(e) SrcT=float DstT=complex64\ny = MatrixLogarithm(c)\n"),
	endless("determinant", matrix(6000)+"y = MatrixDeterminant(e)\n"),
	endless("normalization", hidden("n", "int32[4]{1, 1, 1, 2000000}", "[4]")+"e = RandomUniform(n) dtype=float\ny = LRN(e) depth_radius=1000000\n"),
	endless("pooling", hidden("n", "int32[4]{1, 4000, 4000, 1}", "[4]")+"e = RandomUniform(n) dtype=float\ny = MaxPool(e) ksize=[1, 4000, 4000, 1] strides=[1, 1, 1, 1] padding=\"SAME\"\n"),
	endless("nearest", matrix(6000)+"k = Const() value=int64[]{10}\ny = NearestNeighbors(e, e, k)\n"),
	endless("kmeans", matrix(1000)+hidden("k", "int64[]{1000}", "[]")+hidden("seed", "int64[]{1}", "[]")+hidden("tries", "int64[]{4611686018427387904}", "[]")+
		"y = KmeansPlusPlusInitialization(e, k, seed, tries)\n"),
	endless("boxes", hidden("size", "int32[3]{1, 1, 3}", "[3]")+hidden("box", "float[1,1,4]{0, 0, 1, 1}", "[1,1,4]")+
		"y = SampleDistortedBoundingBox(size, box) aspect_ratio_range=[0.0001, 0.00010001] area_range=[0.999, 1.0] max_attempts=1000000000000\n"),
	endless("distance", `
n = Const() value=int64[]{200000}
zero = Const() value=int64[]{0}
one = Const() value=int64[]{1}
r = Range(zero, n, one)
row = Sub(r, r)
i = Pack(row, r) axis=1
shape = Const() value=int64[2]{1, 200000}
`+hidden("o", "int64[]{7}", "[]")+`
other = AddV2(r, o)
y = EditDistance(i, r, shape, i, other, shape)
`),
	endless("suppression", hidden("n", "int32[2]{300000, 4}", "[2]")+`
b = RandomUniform(n) dtype=float
m = Const() value=int32[1]{300000}
s = RandomUniform(m) dtype=float
all = Const() value=int32[]{300000}
o = Const() value=float[]{0.999}
none = Const() value=float[]{0}
y = NonMaxSuppressionV3(b, s, all, o, none)
`),
}
