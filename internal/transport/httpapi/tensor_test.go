package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// Every form of a tensor is read and written.
func TestTensors(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{`{"dtype":"float32","values":1.5}`, `{"dtype":"float32","shape":[],"values":1.5}`},
		{`{"dtype":"float32","values":[[1,2e0],[ 3 , "NaN"]]}`, `{"dtype":"float32","shape":[2,2],"values":[[1,2],[3,"NaN"]]}`},
		{`{"dtype":"float64","values":["Infinity","-Infinity",1e999]}`, `{"dtype":"float64","shape":[3],"values":["Infinity","-Infinity","Infinity"]}`},
		{`{"dtype":"float16","values":[0.5]}`, `{"dtype":"float16","shape":[1],"values":[0.5]}`},
		{`{"dtype":"bfloat16","values":[0.5]}`, `{"dtype":"bfloat16","shape":[1],"values":[0.5]}`},
		{`{"dtype":"int32","shape":[2,2],"values":[1,2,3,4]}`, `{"dtype":"int32","shape":[2,2],"values":[[1,2],[3,4]]}`},
		{`{"dtype":"int64","values":[9223372036854775807]}`, `{"dtype":"int64","shape":[1],"values":[9223372036854775807]}`},
		{`{"dtype":"uint64","values":[18446744073709551615]}`, `{"dtype":"uint64","shape":[1],"values":[18446744073709551615]}`},
		{`{"dtype":"bool","values":[true,false]}`, `{"dtype":"bool","shape":[2],"values":[true,false]}`},
		{`{"dtype":"string","values":["a,[","\"",{"b64":"/w=="}]}`, `{"dtype":"string","shape":[3],"values":["a,[","\"",{"b64":"/w=="}]}`},
		{`{"dtype":"complex64","values":[[1,2],[3,4]]}`, `{"dtype":"complex64","shape":[2],"values":[[1,2],[3,4]]}`},
		{`{"dtype":"complex128","values":[[[1,2]]]}`, `{"dtype":"complex128","shape":[1,1],"values":[[[1,2]]]}`},
		{`{"dtype":"float32","values":[]}`, `{"dtype":"float32","shape":[0],"values":[]}`},
		{`{"dtype":"float32","values":[[],[]]}`, `{"dtype":"float32","shape":[2,0],"values":[[],[]]}`},
		{`{"dtype":"float32","shape":[2,0],"values":[]}`, `{"dtype":"float32","shape":[2,0],"values":[[],[]]}`},
		{`{"dtype":"float32","shape":[1],"base64":"AACAPw=="}`, `{"dtype":"float32","shape":[1],"values":[1]}`},
		{`{"dtype":"int16","shape":[2],"bytes":{"offset":1,"size":4}}`, `{"dtype":"int16","shape":[2],"values":[258,772]}`},
		{`{"dtype":"string","shape":[1],"base64":"AQAAAGE="}`, `{"dtype":"string","shape":[1],"values":["a"]}`},
	} {
		var in Tensor
		if err := json.Unmarshal([]byte(tt.in), &in); err != nil {
			t.Fatalf("%s: %v", tt.in, err)
		}
		v, err := in.decode([]byte{0, 2, 1, 4, 3})
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		for _, form := range []string{formValues, formBase64, formBytes} {
			var tail []byte
			out, err := encode(&v, form, &tail)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			if form == formValues {
				if string(text) != tt.want {
					t.Errorf("%s: got %s, want %s", tt.in, text, tt.want)
				}
				continue
			}
			var again Tensor
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatal(err)
			}
			if back, err := again.decode(tail); err != nil || back.String() != v.String() {
				t.Errorf("%s as %s: got %v, %v", tt.in, form, back.String(), err)
			}
		}
	}
}

func TestTensorErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{"dtype":"floats","values":1}`:                                                   `the dtype "floats" is unknown or has no form in JSON`,
		`{"dtype":"resource","values":1}`:                                                 `the dtype "resource" is unknown or has no form in JSON`,
		`{"dtype":"float32"}`:                                                             "a tensor needs exactly one of values, base64 and bytes",
		`{"dtype":"float32","values":1,"base64":""}`:                                      "a tensor needs exactly one of values, base64 and bytes",
		`{"dtype":"float32","shape":[-1],"values":[1]}`:                                   "the shape [-1]",
		`{"dtype":"float32","shape":[2],"values":[1]}`:                                    "a tensor of shape [2] has 1 values, want 2",
		`{"dtype":"float32","shape":[1],"values":[1,2]}`:                                  "a tensor of shape [1] has more than 1 values",
		`{"dtype":"float32","shape":[4611686018427387904],"values":[1]}`:                  "a tensor of shape [4611686018427387904]",
		`{"dtype":"float32","values":[[1,2],[3]]}`:                                        "the values are not nested evenly",
		`{"dtype":"float32","values":[[1],2]}`:                                            "the values are not nested evenly",
		`{"dtype":"float32","values":[1,[2]]}`:                                            "the values are not nested",
		`{"dtype":"float32","values":["x"]}`:                                              `the value "x" is not one of type float32`,
		`{"dtype":"float32","values":[null]}`:                                             `the value null is not one of type float32`,
		`{"dtype":"int32","values":[1.5]}`:                                                `the value 1.5 is not one of type int32`,
		`{"dtype":"uint8","values":[256]}`:                                                `the value 256 is not one of type uint8`,
		`{"dtype":"string","values":[1]}`:                                                 `the value 1 is not one of type string`,
		`{"dtype":"complex64","values":[[1,2,3]]}`:                                        `the value [1,2,3] is not one of type complex64`,
		`{"dtype":"float32","shape":[1],"base64":"AAA="}`:                                 "a tensor of type float32 and shape [1] has 2 bytes, want 4",
		`{"dtype":"float32","base64":"AACAPw=="}`:                                         "a tensor without values needs a shape",
		`{"dtype":"float32","shape":[1],"bytes":{"offset":2,"size":4}}`:                   "the bytes from 2 to 6 of a tensor exceed the 5 bytes after the JSON",
		`{"dtype":"float32","shape":[1],"bytes":{"offset":9223372036854775807,"size":4}}`: "exceed the 5 bytes",
		`{"dtype":"string","shape":[2],"base64":"AQAAAGE="}`:                              "5 bytes are too few for 2 strings",
		`{"dtype":"bool","shape":[1],"base64":"Ag=="}`:                                    "a bool is neither 0 nor 1",
	} {
		var v Tensor
		if err := json.Unmarshal([]byte(in), &v); err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		if _, err := v.decode(make([]byte, 5)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

// FuzzValues reads arbitrary values without a panic, and what is read is written and read again.
func FuzzValues(f *testing.F) {
	for _, text := range []string{`1`, `[[1,2],[3,4]]`, `["a",{"b64":"AA=="}]`, `[[1,2]]`, `[[[]]]`, `["NaN"]`, `true`, `{}`, `[`, `]`} {
		f.Add(text, "float32")
		f.Add(text, "string")
		f.Add(text, "complex64")
	}
	f.Fuzz(func(t *testing.T, text, dtype string) {
		d, ok := tensor.ParseDType(dtype)
		if !ok || !json.Valid([]byte(text)) {
			return
		}
		in := Tensor{DType: d.Name(), Values: json.RawMessage(text)}
		v, err := in.decode(nil)
		if err != nil {
			return
		}
		out, err := encode(&v, formValues, nil)
		if err != nil {
			t.Fatal(err)
		}
		back, err := out.decode(nil)
		if err != nil || back.String() != v.String() {
			t.Fatalf("%s: got %v, %v, want %v", out.Values, back.String(), err, v.String())
		}
	})
}

// The shape is that of the first elements. The text is read once, however deep it is nested.
func TestShapeOf(t *testing.T) {
	for text, want := range map[string][]int64{
		`1`: {}, `"["`: {}, `[]`: {0}, `[1,2]`: {2}, `[[1,2],[3]]`: {2, 2}, `[[],[1]]`: {2, 0}, `[1,[2]]`: {2},
		`[[1],2,[[3]]]`: {3, 1}, ` [ [ [ 1 ] ] , [ [ 2 ] , [ 3 ] ] ] `: {2, 1, 1}, `["]",{"b64":"["}]`: {2},
	} {
		if got := (&parser{text: []byte(text)}).shapeOf(); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	if got := (&parser{text: []byte(`[[[1,2],[3,4]]]`), complex: true}).shapeOf(); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("complex numbers: got %v", got)
	}
	deep := []byte(strings.Repeat("[", maxRank) + "1" + strings.Repeat(",1", 1000) + strings.Repeat("]", maxRank))
	if n := testing.AllocsPerRun(1, func() { (&parser{text: deep}).shapeOf() }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}
