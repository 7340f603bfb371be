package table

import (
	"errors"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// cells collects the values of one column of a file.
type cells interface {
	add(line string, columns []string, number int64) error
	tensor() tensor.Tensor
}

// newCells returns an empty list for a column of a dtype.
func newCells(column int, dtype tensor.DType, offset int64) (cells, error) {
	if column == lineNumber {
		return &numbered{offset: offset}, nil
	}
	switch dtype {
	case tensor.Int32:
		return &parsed[int32]{column: column, parse: func(s string) (int32, error) {
			n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
			return int32(n + offset), err // TensorFlow adds the offset for this dtype only
		}}, nil
	case tensor.Int64:
		return &parsed[int64]{column: column, parse: func(s string) (int64, error) {
			return strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		}}, nil
	case tensor.Float32:
		return &parsed[float32]{column: column, parse: func(s string) (float32, error) {
			f, err := parseFloat(s, 32)
			return float32(f), err
		}}, nil
	case tensor.Float64:
		return &parsed[float64]{column: column, parse: func(s string) (float64, error) { return parseFloat(s, 64) }}, nil
	case tensor.String:
		return &parsed[string]{column: column, parse: func(s string) (string, error) {
			membudget.MustTake(int64(len(s))) // both columns may be the whole line
			return strings.Clone(s), nil
		}}, nil
	}
	return nil, status.InvalidArgumentf("Data type %v not supported.", dtype)
}

// parsed holds the elements of type T parsed from a column.
type parsed[T tensor.Elem] struct {
	column int
	parse  func(string) (T, error)
	vals   []T
}

func (p *parsed[T]) add(line string, columns []string, number int64) error {
	if p.column >= 0 {
		line = columns[p.column]
	}
	v, err := p.parse(line)
	if err != nil {
		return status.InvalidArgumentf("Field %s in line %d is not a valid %v.", line, number, tensor.DTypeOf[T]())
	}
	p.vals = membudget.Append(p.vals, v)
	return nil
}

func (p *parsed[T]) tensor() tensor.Tensor { return tensor.Vector(p.vals...) }

// numbered holds line numbers.
type numbered struct {
	offset int64
	vals   []int64
}

func (n *numbered) add(_ string, _ []string, number int64) error {
	n.vals = membudget.Append(n.vals, number+n.offset)
	return nil
}

func (n *numbered) tensor() tensor.Tensor { return tensor.Vector(n.vals...) }

// parseFloat parses a number as C does, in decimal or hexadecimal digits. A number that is too
// large becomes infinite.
func parseFloat(s string, bits int) (float64, error) {
	s = strings.TrimSpace(s)
	if strings.Contains(s, "_") {
		return 0, strconv.ErrSyntax
	}
	if strings.ContainsAny(s, "xX") && !strings.ContainsAny(s, "pP") {
		s += "p0" // required by strconv
	}
	f, err := strconv.ParseFloat(s, bits)
	if errors.Is(err, strconv.ErrRange) {
		err = nil
	}
	return f, err
}
