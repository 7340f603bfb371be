package parsing

import (
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// contextWords is the wording of ParseSequenceExample for context features.
type contextWords struct{ names }

func (w contextWords) record(row int, _ string) error {
	return status.InvalidArgumentf("Invalid protocol message input, example id: %s", w.of(row))
}

func (w contextWords) unreadable(f *feature, row int) error {
	return status.InvalidArgumentf("Name: %s, Context feature: %s.  Data types don't match. Expected type: %v", w.of(row), f.key, f.dtype)
}

func (w contextWords) mismatch(f *feature, row int, _ tensor.DType) error {
	return w.unreadable(f, row)
}

func (w contextWords) count(_ *feature, row, _ int) error {
	return status.InvalidArgumentf("Unexpected number of elements in example %s", w.of(row))
}

func (contextWords) missing(f *feature, _ int) error {
	return status.InvalidArgumentf("Feature: %s (data type: %v) is required but could not be found.", f.key, f.dtype)
}

// soleContextWords is the wording of ParseSingleSequenceExample for context features.
type soleContextWords struct{ contextWords }

func (soleContextWords) record(_ int, text string) error {
	return status.InvalidArgumentf("Could not parse example input, value: '%s'", text)
}

func (w soleContextWords) mismatch(f *feature, row int, got tensor.DType) error {
	return status.InvalidArgumentf("Name: %s, Context feature: %s.  Data types don't match. Expected type: %v  Feature is: %s",
		w.of(row), f.key, f.dtype, valuesOf[got].list)
}

func (w soleContextWords) count(f *feature, row, n int) error {
	return wrongCount(f, w.of(row), 0, n)
}

// wrongCount returns ParseSingleSequenceExample's error for a context feature or list step with n
// values.
func wrongCount(f *feature, name string, step, n int) error {
	if f.dtype == tensor.String {
		return status.InvalidArgumentf("Name: %s, Key %s, Index: %d.  Number of bytes values != expected.  Values size: %d but output shape: %v",
			name, f.key, step, n, f.shape)
	}
	return status.InvalidArgumentf("Name: %s, Key: %s, Index: %d.  Number of %s values != expected.  values size: %d but output shape: %v",
		name, f.key, step, f.set().noun, n, f.shape)
}

func (w soleContextWords) missing(f *feature, row int) error {
	return status.InvalidArgumentf("Name: %s, Context feature '%s' is required but could not be found.", w.of(row), f.key)
}
