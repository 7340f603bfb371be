package jsontensor_test

import (
	"math"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/serving/jsondoc"
	"github.com/weft-ml/weft/internal/serving/jsontensor"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/tensor"
)

func value(t *testing.T, text string) jsondoc.Value {
	t.Helper()
	v, err := jsondoc.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func args(d tensor.DType, names ...string) []serve.Argument {
	var out []serve.Argument
	for _, name := range names {
		out = append(out, serve.Argument{Name: name, DType: d})
	}
	return out
}

func TestColumnsAndRows(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		inputs     []serve.Argument
		rows       bool
		want       string // the tensor of the last input as JSON, or the error
	}{
		{"scalar", `3`, args(tensor.Float32, "x"), false, "3.0"},
		{"matrix", `[[1, 2.5], [3, 1e-7]]`, args(tensor.Float32, "x"), false, "[[1.0, 2.5], [3.0, 1e-07]]"},
		{"empty", `[]`, args(tensor.Int64, "x"), false, "[]"},
		{"named", `{"a": [1], "b": [2], "c": 0}`, args(tensor.Int32, "a", "b"), false, "[2]"},
		{"wraps", `[300, -1]`, args(tensor.Uint8, "x"), false, "[44, 255]"},
		{"strings", `["a", {"b64": "YgE"}]`, args(tensor.String, "x"), false, `["a", "b\u0001"]`},
		{"booleans", `[true, false]`, args(tensor.Bool, "x"), false, "[true, false]"},
		{"plain rows", `[[1, 2], [3, 4]]`, args(tensor.Float64, "x"), true, "[[1.0, 2.0], [3.0, 4.0]]"},
		{"named rows", `[{"a": 1, "b": 2}, {"b": 4, "a": 3}]`, args(tensor.Int64, "a", "b"), true, "[2, 4]"},
		{"base64 rows", `[{"b64": "YQ=="}, "b"]`, args(tensor.String, "x"), true, `["a", "b"]`},
		{"ragged", `[[1], [2, 3]]`, args(tensor.Float32, "x"), false, "Encountered list at unexpected size: 2 at level: 1 expected size: 1"},
		{"level", `[[1.0], 2.0]`, args(tensor.Float32, "x"), false, "JSON Value: 2.0 found at incorrect level: 2 in the JSON DOM. Expected at level: 2"},
		{"fraction", `[1.0]`, args(tensor.Int32, "x"), false, "JSON Value: 1.0 Type: Number is not of expected type: int32"},
		{"negative", `[-1]`, args(tensor.Uint64, "x"), false, "JSON Value: -1 Type: Number is not of expected type: uint64"},
		{"half", `[1]`, args(tensor.Float16, "x"), false, "Conversion of JSON Value: 1 to type: half"},
		{"missing", `{"a": [1]}`, args(tensor.Int32, "a", "b"), false, "Missing named input: b in 'inputs' object."},
		{"row sizes", `[[1], [2, 3]]`, args(tensor.Float32, "x"), true, "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: Expecting tensor size: 1 but got: 2"},
		{"row shapes", `[[1, 2], [[2, 3]]]`, args(tensor.Float32, "x"), true, "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: Expecting shape [2] but got: [1,2]"},
		{"row keys", `[{"a": 1}]`, args(tensor.Int32, "a", "b"), true, `Failed to process element: 0 of 'instances' list. JSON object: {"a":1} keys must be equal to: a,b`},
		{"mixed", `[1, {"x": 1}]`, args(tensor.Int32, "x"), true, "Expecting value/list but got object at item 1 of input list"},
	} {
		convert := jsontensor.Columns
		if tt.rows {
			convert = jsontensor.Rows
		}
		got, err := convert(value(t, tt.text), tt.inputs)
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			out, err := jsontensor.AppendOutputs(nil, map[string]tensor.Tensor{"y": got[tt.inputs[len(tt.inputs)-1].Name]})
			if err != nil {
				t.Fatal(err)
			}
			text = strings.TrimSuffix(strings.TrimPrefix(string(out), "{\n    \"outputs\": "), "\n}")
		}
		if text != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, text, tt.want)
		}
	}
}

func TestFloats(t *testing.T) {
	for _, tt := range []struct {
		v    float64
		bits int
		want string
	}{
		{0.1, 32, "0.1"}, {float64(float32(0.1)), 32, "0.1"}, {1.0 / 3, 64, "0.33333333333333331"}, {float64(float32(1.0) / 3), 32, "0.333333343"},
		{100000, 32, "100000.0"}, {1000000, 32, "1e+06"}, {1234567, 32, "1234567.0"}, {1e-5, 64, "1e-05"}, {math.NaN(), 32, "NaN"},
		{math.Inf(-1), 64, "-Infinity"}, {math.Copysign(0, -1), 32, "-0.0"}, {math.MaxFloat32, 32, "3.40282347e+38"},
	} {
		if got := string(jsontensor.AppendFloat(nil, tt.v, tt.bits)); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.v, got, tt.want)
		}
	}
}

func TestPredictions(t *testing.T) {
	matrix, err := tensor.FromSlice(tensor.Shape{2, 1}, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]tensor.Tensor{"s_bytes": tensor.Vector("\xff", "b"), "y": matrix}
	got, err := jsontensor.AppendPredictions(nil, out)
	want := "{\n    \"predictions\": [{\"s_bytes\": {\"b64\": \"/w==\"}, \"y\": [1.0]}, {\"s_bytes\": {\"b64\": \"Yg==\"}, \"y\": [2.0]}]\n}"
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	out["z"] = tensor.Scalar[int32](1)
	if _, err := jsontensor.AppendPredictions(nil, out); err == nil || err.Error() != "Tensor name: z has no shape information " {
		t.Errorf("got %v", err)
	}
	out["z"] = tensor.Vector[int32](1, 2, 3)
	if _, err := jsontensor.AppendPredictions(nil, out); err == nil || err.Error() != "Tensor name: z has inconsistent batch size: 3 expecting: 2" {
		t.Errorf("got %v", err)
	}
}
