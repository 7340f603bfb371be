package kerneltest

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// parseHead reads "Op name=value name=value".
func (c *Case) parseHead(s string) error {
	words := fields(s)
	if len(words) == 0 {
		return fmt.Errorf("no operation")
	}
	c.Op, c.Attrs = words[0], opdef.Attrs{}
	op, ok := kernel.Default.LookupOp(c.Op)
	if !ok {
		return fmt.Errorf("operation %s is not registered", c.Op)
	}
	for _, w := range words[1:] {
		name, text, _ := strings.Cut(w, "=")
		attr := op.Attr(name)
		if attr == nil {
			return fmt.Errorf("%s has no attr %s", c.Op, name)
		}
		v, err := opdef.ParseValue(attr.Kind, text)
		if err != nil {
			return err
		}
		c.Attrs[name] = v
	}
	return nil
}

func (c *Case) parseLine(word, rest string) error {
	var err error
	switch word {
	case "in":
		err = c.parseInput(rest)
	case "var":
		c.Vars = append(c.Vars, len(c.In))
		err = c.parseInput(rest)
	case "out":
		err = c.parseOutput(rest)
	case "after":
		var t tensor.Tensor
		t, err = ParseTensor(rest)
		c.After = append(c.After, t)
	case "dy":
		c.DY, err = appendGradient(c.DY, rest)
	case "dx":
		c.DX, err = appendGradient(c.DX, rest)
	case "tol":
		c.Tol, err = strconv.ParseFloat(rest, 64)
	case "error":
		var text string
		c.Code, text, _ = strings.Cut(rest, " ")
		c.Error, err = strconv.Unquote(text)
	default:
		err = fmt.Errorf("unknown word %q", word)
	}
	return err
}

// appendGradient reads "none", or a tensor with the optional prefix "sparse".
func appendGradient(list []Gradient, s string) ([]Gradient, error) {
	if s == "none" {
		return append(list, Gradient{}), nil
	}
	s, sparse := strings.CutPrefix(s, "sparse ")
	t, err := ParseTensor(s)
	return append(list, Gradient{Value: t, Sparse: sparse}), err
}

func (c *Case) parseInput(s string) error {
	if c.Kind != "shapes" {
		t, err := ParseTensor(s)
		c.In = append(c.In, t)
		return err
	}
	if value, ok := strings.CutPrefix(s, "= "); ok {
		t, err := ParseTensor(value)
		c.In, c.Shapes = append(c.In, t), append(c.Shapes, t.Shape().Partial())
		return err
	}
	_, text, _ := strings.Cut(s, " ")
	shape, err := parsePartial(text)
	c.In, c.Shapes = append(c.In, tensor.Tensor{}), append(c.Shapes, shape)
	return err
}

func (c *Case) parseOutput(s string) error {
	if c.Kind == "case" {
		t, err := ParseTensor(s)
		c.Out = append(c.Out, t)
		return err
	}
	shape, err := parsePartial(s)
	c.Outs = append(c.Outs, shape)
	return err
}

func parsePartial(s string) (tensor.PartialShape, error) {
	if s == "?" {
		return tensor.PartialShape{}, nil
	}
	v, err := opdef.ParseValue("shape", strings.ReplaceAll(s, "?", "-1"))
	shape, _ := v.(tensor.PartialShape)
	return shape, err
}

// fields splits s at spaces outside of quotes and brackets.
func fields(s string) []string {
	var out []string
	start, depth := -1, 0
	quote := byte(0)
	for i := range len(s) {
		switch b := s[i]; {
		case quote != 0:
			if b == quote && s[i-1] != '\\' {
				quote = 0
			}
			continue
		case b == '\'' || b == '"':
			quote = b
		case b == '[':
			depth++
		case b == ']':
			depth--
		case b == ' ' && depth == 0:
			if start >= 0 {
				out = append(out, s[start:i])
			}
			start = -1
			continue
		}
		if start < 0 {
			start = i
		}
	}
	if start >= 0 {
		out = append(out, s[start:])
	}
	return out
}

// ParseTensor reads a tensor in the form of cases: type, shape, and the elements in order,
// separated by spaces.
func ParseTensor(s string) (tensor.Tensor, error) {
	words := fields(s)
	if len(words) < 2 {
		return tensor.Tensor{}, fmt.Errorf("%q is not a tensor", s)
	}
	dtype, ok := tensor.ParseDType(words[0])
	if !ok {
		return tensor.Tensor{}, fmt.Errorf("unknown type %s", words[0])
	}
	partial, err := parsePartial(words[1])
	if err != nil {
		return tensor.Tensor{}, err
	}
	shape, _ := partial.Full()
	t, err := tensor.Zeros(dtype, shape)
	if err != nil {
		return t, err
	}
	vals := words[2:]
	if len(vals) != t.NumElements() {
		return t, fmt.Errorf("%d values for shape %v", len(vals), shape)
	}
	return t, setElements(&t, vals)
}

func setElements(t *tensor.Tensor, vals []string) error {
	switch t.DType() {
	case tensor.Bool:
		return fill(t, vals, strconv.ParseBool)
	case tensor.String:
		return fill(t, vals, strconv.Unquote)
	case tensor.Int8, tensor.QInt8, tensor.Int4:
		return fillAs[int8](t, tensor.Int8, vals, parseInt[int8])
	case tensor.Int16, tensor.QInt16:
		return fillAs[int16](t, tensor.Int16, vals, parseInt[int16])
	case tensor.Int32, tensor.QInt32:
		return fillAs[int32](t, tensor.Int32, vals, parseInt[int32])
	case tensor.Int64:
		return fill(t, vals, parseInt[int64])
	case tensor.Uint8, tensor.QUint8, tensor.Uint4:
		return fillAs[uint8](t, tensor.Uint8, vals, parseUint[uint8])
	case tensor.Uint16, tensor.QUint16:
		return fillAs[uint16](t, tensor.Uint16, vals, parseUint[uint16])
	case tensor.Uint32:
		return fill(t, vals, parseUint[uint32])
	case tensor.Uint64:
		return fill(t, vals, parseUint[uint64])
	case tensor.Float32:
		return fill(t, vals, parseFloat32)
	case tensor.Float64:
		return fill(t, vals, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
	case tensor.Float16:
		return fill(t, vals, func(s string) (tensor.Float16Elem, error) {
			v, err := parseFloat32(s)
			return tensor.Float16Of(v), err
		})
	case tensor.BFloat16:
		return fill(t, vals, func(s string) (tensor.BFloat16Elem, error) {
			v, err := parseFloat32(s)
			return tensor.BFloat16Of(v), err
		})
	case tensor.Complex64:
		return fill(t, vals, func(s string) (complex64, error) {
			v, err := parseComplex(s)
			return complex64(v), err
		})
	case tensor.Complex128:
		return fill(t, vals, parseComplex)
	default:
		return fmt.Errorf("cases do not support %v tensors", t.DType())
	}
}

func fill[T tensor.Elem](t *tensor.Tensor, vals []string, parse func(string) (T, error)) error {
	out := tensor.Values[T](t)
	for i, s := range vals {
		v, err := parse(s)
		if err != nil {
			return err
		}
		out[i] = v
	}
	return nil
}

func fillAs[T tensor.Elem](t *tensor.Tensor, as tensor.DType, vals []string, parse func(string) (T, error)) error {
	u, err := t.WithDType(as)
	if err != nil {
		return err
	}
	return fill(&u, vals, parse)
}

func parseInt[T ~int8 | ~int16 | ~int32 | ~int64](s string) (T, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	return T(v), err
}

func parseUint[T ~uint8 | ~uint16 | ~uint32 | ~uint64](s string) (T, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	return T(v), err
}

func parseFloat32(s string) (float32, error) {
	v, err := strconv.ParseFloat(s, 32)
	return float32(v), err
}

// parseComplex reads "re+imi". strconv does not parse signed infinities and NaNs in this form, so
// the parts are split here.
func parseComplex(s string) (complex128, error) {
	s = strings.TrimSuffix(s, "i")
	for i := len(s) - 1; i > 0; i-- {
		if (s[i] != '+' && s[i] != '-') || s[i-1] == 'e' {
			continue
		}
		re, err := strconv.ParseFloat(s[:i], 64)
		if err != nil {
			return 0, err
		}
		im, err := strconv.ParseFloat(s[i:], 64)
		if err != nil && strings.Contains(s[i:], "nan") {
			im, err = math.NaN(), nil
		}
		return complex(re, im), err
	}
	return 0, fmt.Errorf("%q is not complex", s)
}
