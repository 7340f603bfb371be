package parsing

import (
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// wording creates errors with the texts of one operation.
type wording interface {
	// record returns the error for an unreadable record.
	record(row int, text string) error
	// unreadable returns the error for an unreadable feature.
	unreadable(f *feature, row int) error
	// mismatch returns the error for a feature of an unexpected dtype.
	mismatch(f *feature, row int, got tensor.DType) error
	// count returns the error for a dense feature with an unexpected number of values.
	count(f *feature, row, n int) error
	// missing returns the error for a missing dense feature without a default.
	missing(f *feature, row int) error
}

// names holds the record names for errors; may be empty.
type names []string

func (n names) of(row int) string {
	if len(n) == 0 {
		return "<unknown>"
	}
	return n[row]
}

// exampleWords is the wording of ParseExample for several records.
type exampleWords struct{ names }

func (w exampleWords) record(_ int, text string) error {
	return status.InvalidArgumentf("Could not parse example input, value: '%s'", text)
}

func (w exampleWords) at(f *feature, row int, format string, args ...any) error {
	return status.InvalidArgumentf("Name: %s, Key: %s, Index: %d.  "+format, append([]any{w.of(row), f.key, row}, args...)...)
}

func (w exampleWords) unreadable(f *feature, row int) error {
	return w.at(f, row, "Can't parse serialized Example.")
}

func (w exampleWords) mismatch(f *feature, row int, got tensor.DType) error {
	if f.shape.RankKnown() {
		return w.at(f, row, "Data types don't match. Data type: %v but expected type: %v", got, f.dtype)
	}
	return w.at(f, row, "Data types don't match. Expected type: %v, Actual type: %v", f.dtype, got)
}

func (w exampleWords) count(f *feature, row, n int) error {
	switch {
	case f.varying:
		return w.at(f, row, "Number of %s values is not a multiple of stride length. Saw %d values but output shape is: %v", f.set().noun, n, f.shape)
	case f.dtype == tensor.String && n > f.stride:
		return w.unreadable(f, row)
	}
	return w.at(f, row, "Number of %s values != expected.  Values size: %d but output shape: %v", f.set().noun, n, f.shape)
}

func (w exampleWords) missing(f *feature, row int) error {
	return status.InvalidArgumentf("Name: %s, Feature: %s (data type: %v) is required but could not be found.", w.of(row), f.key, f.dtype)
}

// soleWords is the wording of ParseExample for one record.
type soleWords struct{ exampleWords }

func (soleWords) unreadable(f *feature, _ int) error {
	return status.InvalidArgumentf("Key: %s.  Can't parse serialized Example: Parsing %s failed.", f.key, f.set().list)
}

func (soleWords) mismatch(f *feature, _ int, got tensor.DType) error {
	if f.shape.RankKnown() {
		return status.InvalidArgumentf("Key: %s.  Data types don't match. Data type: %v but expected type: %v", f.key, got, f.dtype)
	}
	return status.InvalidArgumentf("Key: %s.  Data types don't match. Expected type: %v, Actual type: %v", f.key, f.dtype, got)
}

func (w soleWords) count(f *feature, row, n int) error {
	switch {
	case f.varying:
		return status.InvalidArgumentf("Error while parsing feature with key %s: number of elements should be divisible by %d, found %d instead", f.key, f.stride, n)
	case f.dtype == tensor.String && n > f.stride:
		return w.unreadable(f, row)
	}
	return status.InvalidArgumentf("Key: %s.  Can't parse serialized Example: Some %s slice was not parsed.", f.key, f.set().list)
}

func (soleWords) missing(f *feature, _ int) error {
	return status.InvalidArgumentf("Feature: %s (data type: %v) is required but could not be found.", f.key, f.dtype)
}
