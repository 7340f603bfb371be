package data

import (
	"encoding/json"
	"os"
	"slices"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/status"
)

// Row returns the features of one line, given by the names of the columns, as [ReadCSV] would read
// it. A column that is not given has no value. The receiver is [Table.Options] of the training
// data. A missing value is an error if Missing is [MissingDrops].
func (o CSV) Row(values map[string]string) ([]float32, error) {
	row, err := o.row(values)
	if err != nil {
		return nil, withLine(status.Errorf(status.CodeOf(err), "data: %w", err))
	}
	return row, nil
}

func (o CSV) row(values map[string]string) ([]float32, error) {
	if o.Features == nil {
		return nil, status.InvalidArgumentf("CSV.Features is nil; use the Options of the table that ReadCSV returned")
	}
	for name := range values {
		if !slices.Contains(o.Features, name) {
			return nil, status.InvalidArgumentf("there is no feature %q; there are %q", name, o.Features)
		}
	}
	o.Unlabeled, o.Label = true, ""
	if o.Missing == MissingDrops {
		o.Missing = MissingFails
	}
	r, err := o.reader(o.Features)
	if err != nil {
		return nil, err
	}
	fields := make([]string, len(o.Features))
	for i, name := range o.Features {
		fields[i] = values[name]
	}
	if err := r.add(fields, 0); err != nil {
		return nil, err
	}
	t, err := r.finish()
	if err != nil {
		return nil, err
	}
	return t.Features[0], nil
}

// Save writes the options to a file, as JSON, for a program that predicts: [Table.Options] of the
// training data.
func (o CSV) Save(path string) error {
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return status.Errorf(status.Internal, "data: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // no secret
		return status.Errorf(status.InvalidArgument, "data: %w", err)
	}
	return nil
}

// LoadCSV reads options that [CSV.Save] wrote.
func LoadCSV(path string) (CSV, error) {
	var o CSV
	text, err := fileio.Files{}.Read(path)
	if err != nil {
		return o, fileError(path, err)
	}
	if err := json.Unmarshal(text, &o); err != nil {
		return o, status.Errorf(status.DataLoss, "data: %s holds no options of a CSV file: %w", path, err)
	}
	return o, nil
}
