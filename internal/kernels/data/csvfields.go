package data

import (
	"strings"

	"github.com/weft-ml/weft/internal/opkit/cparse"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// csvFormat describes how records are parsed.
type csvFormat struct {
	quoted   bool // fields may be quoted
	delim    byte
	na       string  // text of a missing field
	selected []int64 // selected columns; if there are none, all that are not excluded
	excluded []int64
	types    []tensor.DType
	defaults element
}

// csvState is the state of the scanner within a record.
type csvState int

const (
	betweenFields csvState = iota
	unquotedField
	quotedField
	afterQuote // in a quoted field: its end, or the first of two quotes
	endOfRecord
)

// step returns the state after another byte.
func (f *csvFormat) step(s csvState, c byte) csvState {
	switch {
	case s == quotedField && c == '"':
		return afterQuote
	case s == quotedField, s == afterQuote && c != f.delim && c != '\n' && c != '\r':
		// the quote is half of an escaped quote, or an error
		return quotedField
	case c == f.delim:
		return betweenFields
	case c == '\n' || c == '\r':
		return endOfRecord
	case s == betweenFields && c == '"' && f.quoted:
		return quotedField
	}
	return unquotedField
}

// parse parses a record into an element. It returns the first error.
func (f *csvFormat) parse(record string) (element, error) {
	var out element
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	all := len(f.selected) == 0 && len(f.excluded) == 0
	nextSelected, nextExcluded := 0, 0
	for column, begin := int64(0), 0; begin <= len(record); column++ {
		field, end, err := f.field(record, begin)
		begin = end
		excluded := nextExcluded < len(f.excluded) && f.excluded[nextExcluded] == column
		chosen := nextSelected < len(f.selected) && f.selected[nextSelected] == column
		if excluded {
			nextExcluded++
		}
		if chosen {
			nextSelected++
		}
		if err != nil {
			note(err)
			continue
		}
		if !all && !chosen && (len(f.excluded) == 0 || excluded) {
			continue
		}
		t, err := f.component(len(out), field)
		if err != nil {
			note(err)
			continue
		}
		//sizedmake:ok at most as many as types
		out = append(out, t)
	}
	if first == nil && len(out) != len(f.types) {
		first = status.InvalidArgumentf("Expect %d fields but have %d in record", len(f.types), len(out))
	}
	if first != nil {
		out.release()
		return nil, first
	}
	return out, nil
}

// field returns the field that starts at begin and the start of the next field.
func (f *csvFormat) field(record string, begin int) (string, int, error) {
	if f.quoted && begin < len(record) && record[begin] == '"' {
		return f.quotedField(record, begin+1)
	}
	end := strings.IndexByte(record[begin:], f.delim)
	if end < 0 {
		end = len(record)
	} else {
		end += begin
	}
	text := record[begin:end]
	if f.quoted && strings.Contains(text, `"`) {
		return "", end + 1, status.InvalidArgumentf("Unquoted fields cannot have quotes inside")
	}
	return text, end + 1, nil
}

// quotedField returns the quoted field whose opening quote has been read, and the start of the next
// field. It asks for the memory of a field with escaped quotes, which is a copy.
func (f *csvFormat) quotedField(record string, begin int) (string, int, error) {
	escaped := false
	var err error
	for from := begin; from <= len(record); {
		i := strings.IndexByte(record[from:], '"')
		if i < 0 {
			break
		}
		end := from + i
		switch {
		case end+1 == len(record) || record[end+1] == f.delim:
			text := record[begin:end]
			if escaped {
				membudget.MustTake(int64(len(text)))
				text = strings.ReplaceAll(text, `""`, `"`)
			}
			return text, end + 2, err
		case record[end+1] != '"':
			err = status.InvalidArgumentf("Quote inside a string has to be escaped by another quote")
		default:
			escaped = true
		}
		from = end + 2
	}
	return "", len(record) + 1, status.InvalidArgumentf("Reached end of file without closing quoted field in record")
}

// csvNames are the names of field types in errors.
var csvNames = map[tensor.DType]string{tensor.Int32: "int32", tensor.Int64: "int64", tensor.Float32: "float", tensor.Float64: "double"}

// component parses the text of field i into component i of an element.
func (f *csvFormat) component(i int, field string) (tensor.Tensor, error) {
	if i >= len(f.types) {
		return tensor.Tensor{}, status.InvalidArgumentf("Expect %d fields but have more in record", len(f.types))
	}
	if field == "" || field == f.na {
		if f.defaults[i].NumElements() != 1 {
			return tensor.Tensor{}, status.InvalidArgumentf("Field %d is required but missing in record!", i)
		}
		t, err := f.defaults[i].WithShape(tensor.Shape{})
		return t.Retain(), err
	}
	var t tensor.Tensor
	ok := true
	switch f.types[i] {
	case tensor.Int32:
		var v int64
		v, ok = cparse.Int(field, 32)
		t = tensor.Scalar(int32(v))
	case tensor.Int64:
		var v int64
		v, ok = cparse.Int(field, 64)
		t = tensor.Scalar(v)
	case tensor.Float32:
		var v float64
		v, ok = cparse.Float(field, 32)
		t = tensor.Scalar(float32(v))
	case tensor.Float64:
		var v float64
		v, ok = cparse.Float(field, 64)
		t = tensor.Scalar(v)
	default:
		t = tensor.Scalar(field)
	}
	if !ok {
		return tensor.Tensor{}, status.InvalidArgumentf("Field %d in record is not a valid %s: %s", i, csvNames[f.types[i]], field)
	}
	return t, nil
}
