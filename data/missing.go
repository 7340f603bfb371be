package data

import (
	"math"
	"slices"
	"strconv"

	"github.com/weft-ml/weft/status"
)

// Missing says what becomes of a line of a CSV file in which a feature has no value.
type Missing int

// What becomes of such a line.
const (
	MissingFails Missing = iota // an error, which names the line and the column
	MissingDrops                // the line is left out
	// MissingMean makes the value the mean of the column, or that in CSV.Means. A feature of OneHot
	// gets 0 for all of its texts.
	MissingMean
)

// noValues are the texts that stand for a missing value.
var noValues = []string{"", "?", "NA", "N/A", "#N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none"}

// isMissing reports whether a text stands for a missing value.
func isMissing(text string) bool { return slices.Contains(noValues, text) }

// fill replaces the missing values of features, which are NaN, by means.
func (e *oneHot) fill(t *Table, means map[string]float32) error {
	t.Means = map[string]float32{}
	for i, name := range e.names {
		if e.has(i) {
			continue
		}
		mean, ok := means[name]
		if !ok {
			if mean, ok = meanOf(t.Features, i); !ok {
				return status.InvalidArgumentf("the column %q has no values; leave it out with CSV.Ignore", name)
			}
		}
		t.Means[name] = mean
		for _, row := range t.Features {
			if math.IsNaN(float64(row[i])) {
				row[i] = mean
			}
		}
	}
	return nil
}

// meanOf returns the mean of the values of a column that are not NaN, and false if there are none.
func meanOf(rows [][]float32, column int) (mean float32, ok bool) {
	sum, n := 0.0, 0
	for _, row := range rows {
		if v := float64(row[column]); !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return float32(sum / float64(n)), true
}

// number parses the value of a feature. A value that is missing is NaN.
func (o *CSV) number(text string, line int, column string) (float32, error) {
	if isMissing(text) {
		if o.Missing == MissingFails {
			return 0, status.InvalidArgumentf("%s: the value is missing (%q); set CSV.Missing to leave such lines out, "+
				"or to take the mean", place(line, column), text)
		}
		return float32(math.NaN()), nil
	}
	v, err := strconv.ParseFloat(text, 32)
	if err != nil {
		return 0, status.InvalidArgumentf("%s: %q is not a number; name the column in CSV.OneHot, or leave it out with CSV.Ignore",
			place(line, column), text)
	}
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, status.InvalidArgumentf("%s: %q is not a finite number", place(line, column), text)
	}
	return float32(v), nil
}
