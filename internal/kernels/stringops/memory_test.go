package stringops

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// A result of 1 TiB is refused before it is made.
func TestMemoryOfReplacements(t *testing.T) {
	long := strings.Repeat("a", 1<<20)
	for _, global := range []bool{true, false} {
		rewrite := long
		if !global {
			rewrite = strings.Repeat(`\0`, 1<<20)
		}
		kerneltest.WantExhausted(t, 256<<20, "RegexReplace", opdef.Attrs{"replace_global": global},
			tensor.Vector(long), tensor.Scalar(map[bool]string{true: "a", false: "a+"}[global]), tensor.Scalar(rewrite))
	}
	got, err := kerneltest.TryWithin(256<<20, "RegexReplace", opdef.Attrs{"replace_global": true},
		tensor.Vector(long), tensor.Scalar("a"), tensor.Scalar(`\0b`))
	if err != nil || tensor.Values[string](&got[0])[0] != strings.Repeat("ab", len(long)) {
		t.Errorf("a short replacement: %v", err)
	}
	// the rest of the string is in the result, too
	for _, global := range []bool{true, false} {
		kerneltest.WantExhausted(t, 256<<20, "RegexReplace", opdef.Attrs{"replace_global": global},
			tensor.Vector(strings.Repeat("a", 96<<20)+"b"), tensor.Scalar("b"), tensor.Scalar("c"))
	}
}

// The text that strings share is in the result once for each of them.
func TestMemoryOfFormat(t *testing.T) {
	kerneltest.WantExhausted(t, 256<<20, "StringFormat",
		opdef.Attrs{"T": []tensor.DType{tensor.String}, "summarize": int64(-1)}, kerneltest.SharedText(1<<20, 1<<10))
}

// A character takes one byte in UTF-8 and four in UTF-32.
func TestMemoryOfTranscoding(t *testing.T) {
	attrs := opdef.Attrs{"input_encoding": "UTF-8", "output_encoding": "UTF-32-BE"}
	kerneltest.WantExhausted(t, 256<<20, "UnicodeTranscode", attrs, tensor.Vector(strings.Repeat("a", 64<<20)))
	got, err := kerneltest.TryWithin(256<<20, "UnicodeTranscode", attrs, tensor.Vector("aä"))
	if err != nil || tensor.Values[string](&got[0])[0] != "\x00\x00\x00a\x00\x00\x00\xe4" {
		t.Errorf("a short text: %v", err)
	}
	chars, err := tensor.Zeros(tensor.Int32, tensor.Shape{64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	kerneltest.WantExhausted(t, 512<<20, "UnicodeEncode", opdef.Attrs{"output_encoding": "UTF-32-BE", "Tsplits": tensor.Int64},
		chars, tensor.Vector[int64](0, 64<<20))
}

// Formatting ends when its step ends.
func TestFormatEndsWithStep(t *testing.T) {
	kerneltest.WantCancelled(t, "StringFormat", opdef.Attrs{"T": []tensor.DType{tensor.Int32}}, tensor.Vector[int32](1, 2))
}

// A pattern of a few bytes may be a large program.
func TestMemoryOfPatterns(t *testing.T) {
	repeated := strings.Repeat("a{1000}", 50)
	kerneltest.WantExhausted(t, 8<<20, "RegexFullMatch", nil, tensor.Vector("a"), tensor.Scalar(repeated))
	_, err := kerneltest.Try("RegexFullMatch", nil, tensor.Vector("a"), tensor.Scalar(strings.Repeat(repeated, 4)))
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "pattern too large") {
		t.Errorf("a program of 200,000 instructions: %v", err)
	}
}

// A search ends when its step ends.
func TestSearchEndsWithStep(t *testing.T) {
	long := tensor.Vector(strings.Repeat("a", 1<<20))
	kerneltest.WantCancelled(t, "RegexFullMatch", nil, long, tensor.Scalar("(a?){500}b"))
	kerneltest.WantCancelled(t, "RegexReplace", opdef.Attrs{"replace_global": false}, long, tensor.Scalar("(a?){500}b"), tensor.Scalar(""))
	kerneltest.WantCancelled(t, "RegexReplace", opdef.Attrs{"replace_global": true}, long, tensor.Scalar("a*b|a"), tensor.Scalar(""))
}

// The ways of searching long and short strings find the same.
func TestSearchOfLongStrings(t *testing.T) {
	long := strings.Repeat("aé", 1<<20)
	for text, want := range map[string]bool{"(aé)*": true, "a.*é": true, "(aé)*b": false, "(?s).{0,900}": false} {
		got, err := kerneltest.Try("RegexFullMatch", nil, tensor.Vector(long), tensor.Scalar(text))
		if err != nil || tensor.Values[bool](&got[0])[0] != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	got, err := kerneltest.Try("RegexReplace", opdef.Attrs{"replace_global": false}, tensor.Vector(long+"xy"), tensor.Scalar("x(.)"), tensor.Scalar(`\1`))
	if err != nil || tensor.Values[string](&got[0])[0] != long+"y" {
		t.Errorf("the first match: %v", err)
	}
}

// N-grams of many empty parts end with their step.
func TestNGramsEndWithStep(t *testing.T) {
	kerneltest.WantCancelled(t, "StringNGrams", opdef.Attrs{
		"separator": "", "left_pad": "", "right_pad": "", "ngram_widths": []int64{16000}, "pad_width": int64(-1),
		"preserve_short_sequences": false, "Tsplits": tensor.Int64,
	}, tensor.Vector(""), tensor.Vector[int64](0, 1))
}

// A short sequence may get a million times as much padding, which has no text.
func TestMemoryOfPaddedNGrams(t *testing.T) {
	kerneltest.WantExhausted(t, 256<<20, "StringNGrams", opdef.Attrs{
		"separator": "", "left_pad": "", "right_pad": "", "ngram_widths": []int64{1<<31 - 1}, "pad_width": int64(1 << 25),
		"preserve_short_sequences": true, "Tsplits": tensor.Int64,
	}, tensor.Vector(""), tensor.Vector[int64](0, 1))
}

// The conversion of a long string asks for its memory.
func TestMemoryOfCases(t *testing.T) {
	long := tensor.Vector(strings.Repeat("a", 64<<20))
	kerneltest.WantExhausted(t, 96<<20, "StringUpper", nil, long)
	kerneltest.WantExhausted(t, 256<<20, "StringUpper", opdef.Attrs{"encoding": "utf-8"}, long)
	got, err := kerneltest.Try("StringUpper", nil, tensor.Vector("b", strings.Repeat("a", 2*blockSize), "c"))
	if err != nil {
		t.Fatal(err)
	}
	if s := tensor.Values[string](&got[0]); s[0] != "B" || s[1] != strings.Repeat("A", 2*blockSize) || s[2] != "C" {
		t.Errorf("got %q", s)
	}
}

// Strings that share a long text take time and no memory.
func TestStringsEndWithStep(t *testing.T) {
	texts := kerneltest.SharedText(4, 8)
	kerneltest.WantCancelled(t, "StringToHashBucketFast", opdef.Attrs{"num_buckets": int64(8)}, texts)
	kerneltest.WantCancelled(t, "Substr", opdef.Attrs{"unit": "UTF8_CHAR", "T": tensor.Int64}, texts, tensor.Scalar[int64](1), tensor.Scalar[int64](2))
	kerneltest.WantCancelled(t, "StringLength", opdef.Attrs{"unit": "UTF8_CHAR"}, texts)
}

// A long set of delimiters does not make the split slow.
func TestSplitAtManyDelimiters(t *testing.T) {
	got, err := kerneltest.Try("StringSplit", opdef.Attrs{"skip_empty": true}, tensor.Vector("a,b;c"), tensor.Scalar(strings.Repeat(";,", 1<<10)))
	if err != nil || strings.Join(tensor.Values[string](&got[1]), " ") != "a b c" {
		t.Errorf("got %v, %v", got, err)
	}
}
