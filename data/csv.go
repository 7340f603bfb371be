package data

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/sys/callsite"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// CSV configures [ReadCSV].
type CSV struct {
	Label string // name of the column with the labels; the last column if ""
	// Features are the columns of the inputs, which hold numbers. If it is nil, they are all but
	// Label and those of Ignore.
	Features []string
	Ignore   []string // columns that are neither features nor the label
	// OneHot are features with texts. Each becomes one feature for each of its texts, sorted, with
	// a name such as "color=red": 1 in the lines with that text, and otherwise 0. A map from column
	// to texts, such as [Table.Texts] of the training data, gives other files the same features.
	OneHot []string
	Texts  map[string][]string
	// Missing says what becomes of a line in which a feature, or the label, has no value: the field
	// is empty, or "?", "NA", "N/A", "NaN", "null" or "None". A line without a label is left out
	// unless Missing is MissingFails.
	Missing Missing
	// Means are the values of MissingMean by column, such as [Table.Means] of the training data. A
	// column that it lacks has the mean of this file.
	Means map[string]float32
	// Classes are the texts of labels that mean 0, 1 …. If it is nil and a label is not a number,
	// it becomes the sorted list of all texts.
	Classes []string
	// Unlabeled reads lines without labels, for predictions: the column of the labels may be
	// missing or empty, and [Table] has none.
	Unlabeled bool
	// Names are the names of the columns of a file without a header.
	Names []string
	Comma rune // separates fields; ',' if 0
}

// Table is the content of a CSV file in memory.
type Table struct {
	Columns []string // names of the features
	// Classes are the texts of the labels of the classes 0, 1 …; nil if labels are numbers.
	Classes  []string
	Texts    map[string][]string // texts of the columns of OneHot; nil without them
	Means    map[string]float32  // means of the columns of numbers; nil without MissingMean
	Features [][]float32         // one row for each line
	Numbers  []float32           // labels that are numbers; nil if there are classes
	Labels   []int32             // labels that are classes; nil if they are numbers
	Dropped  int                 // number of lines that were left out
	// Options read other files as this one was read: with the same features, texts, means and
	// classes.
	Options CSV
}

// ReadCSV reads a file of lines of fields. The first line has the names of the columns unless Names
// is set. Features must be finite numbers; an error names the line and the column.
func ReadCSV(path string, o CSV) (*Table, error) {
	f, err := fileio.Files{}.Open(path)
	if err != nil {
		return nil, withLine(fileError(path, err))
	}
	defer f.Close()
	t, err := parseCSV(f, o)
	if err != nil {
		return nil, withLine(status.Errorf(status.CodeOf(err), "data: %s: %w", path, err))
	}
	return t, nil
}

// withLine adds the line of the program to an error.
func withLine(err error) error {
	return status.Errorf(status.CodeOf(err), "%s%w", callsite.Find(), err)
}

// fileError returns an error with the code NotFound if a file does not exist.
func fileError(path string, err error) error {
	if status.CodeOf(err) == status.NotFound {
		return status.NotFoundf("data: %s does not exist", path)
	}
	return status.Errorf(status.InvalidArgument, "data: %w", err)
}

func parseCSV(in io.Reader, o CSV) (*Table, error) {
	r := csv.NewReader(in)
	r.TrimLeadingSpace = true
	r.FieldsPerRecord = -1 // checked below
	if o.Comma != 0 {
		r.Comma = o.Comma
	}
	names := o.Names
	if names == nil {
		var err error
		if names, err = r.Read(); errors.Is(err, io.EOF) {
			return nil, status.InvalidArgumentf("the file is empty")
		} else if err != nil {
			return nil, status.Errorf(status.InvalidArgument, "%w", err)
		}
	}
	t, err := o.reader(slices.Clone(names))
	if err != nil {
		return nil, err
	}
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return t.finish()
		}
		if err != nil {
			return nil, status.Errorf(status.InvalidArgument, "%w", err)
		}
		line, _ := r.FieldPos(0)
		if len(fields) != len(names) {
			return nil, status.InvalidArgumentf("line %d has %d fields, and the first line has %d", line, len(fields), len(names))
		}
		if err := t.add(fields, line); err != nil {
			return nil, err
		}
	}
}

// tableReader makes a table of lines.
type tableReader struct {
	*CSV
	names     []string // of the columns
	label     int      // index of the column; -1 for none
	features  []int    // indices of the columns
	encoder   *oneHot
	table     *Table
	labels    []string
	unlabeled int // number of lines that were left out because of the label
}

func (o *CSV) reader(names []string) (*tableReader, error) {
	label, features, err := o.columns(names)
	if err != nil {
		return nil, err
	}
	encoder, err := o.encoder(names, features)
	return &tableReader{
		CSV: o, names: names, label: label, features: features, encoder: encoder, table: &Table{Classes: o.Classes},
	}, err
}

// add adds the fields of a line. The line 0 is in no file.
func (r *tableReader) add(fields []string, line int) error {
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	if r.Missing == MissingDrops && slices.ContainsFunc(r.features, func(c int) bool { return isMissing(fields[c]) }) {
		r.table.Dropped++
		return nil
	}
	if r.label >= 0 && isMissing(fields[r.label]) && !slices.Contains(r.Classes, fields[r.label]) {
		if r.Missing == MissingFails {
			return status.InvalidArgumentf("%s: the label is missing (%q); set CSV.Missing to leave such lines out, "+
				"or CSV.Unlabeled for lines to predict", place(line, r.names[r.label]), fields[r.label])
		}
		r.table.Dropped++
		r.unlabeled++
		return nil
	}
	row := make([]float32, len(r.features))
	for i, c := range r.features {
		if r.encoder.has(i) {
			r.encoder.add(i, fields[c])
			continue
		}
		var err error
		if row[i], err = r.number(fields[c], line, r.names[c]); err != nil {
			return err
		}
	}
	r.table.Features = append(r.table.Features, row)
	if r.label >= 0 {
		r.labels = append(r.labels, fields[r.label])
	}
	return nil
}

// finish returns the table.
func (r *tableReader) finish() (*Table, error) {
	t := r.table
	switch {
	case len(t.Features) == 0 && t.Dropped > 0:
		return nil, status.InvalidArgumentf("the file has no lines of data with all that is needed: %d lack a feature, %d the label "+
			"(set CSV.Unlabeled for lines to predict)", t.Dropped-r.unlabeled, r.unlabeled)
	case len(t.Features) == 0:
		return nil, status.InvalidArgumentf("the file has no lines of data")
	}
	if r.Missing == MissingMean {
		if err := r.encoder.fill(t, r.Means); err != nil {
			return nil, err
		}
	}
	if err := r.encoder.encode(t); err != nil {
		return nil, err
	}
	if r.label >= 0 {
		if err := t.setLabels(r.labels); err != nil {
			return nil, err
		}
	}
	t.Options = *r.CSV
	o := &t.Options
	o.Features, o.Ignore, o.Texts, o.Means, o.Classes = r.encoder.names, nil, t.Texts, t.Means, t.Classes
	if r.label >= 0 {
		o.Label = r.names[r.label]
	}
	return t, nil
}

// place names a column of a line, or of a row that is in no file.
func place(line int, column string) string {
	if line == 0 {
		return fmt.Sprintf("column %q", column)
	}
	return fmt.Sprintf("line %d, column %q", line, column)
}

// columns returns the positions of the label and of the features.
func (o *CSV) columns(names []string) (label int, features []int, err error) {
	find := func(name string) (int, error) {
		if i := slices.Index(names, name); i >= 0 {
			return i, nil
		}
		hint := ""
		if len(names) == 1 && strings.ContainsAny(names[0], ";\t|") {
			hint = "; set CSV.Comma if another character is between the columns"
		}
		return 0, status.InvalidArgumentf("there is no column %q; there are %q%s", name, names, hint)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return 0, nil, status.InvalidArgumentf("two columns are named %q", name)
		}
	}
	label = len(names) - 1
	switch {
	case o.Unlabeled:
		label = -1
	case o.Label != "":
		if label, err = find(o.Label); err != nil {
			return 0, nil, err
		}
	}
	for _, name := range o.Features {
		i, err := find(name)
		if err != nil {
			return 0, nil, err
		}
		features = append(features, i)
	}
	for _, name := range o.Ignore {
		i, err := find(name)
		switch {
		case err != nil:
			return 0, nil, err
		case i == label || slices.Contains(features, i):
			return 0, nil, status.InvalidArgumentf("Ignore has %q, which is the label or a feature", name)
		}
	}
	for i, name := range names {
		isLabel := i == label || o.Unlabeled && name == o.Label
		if o.Features == nil && !isLabel && !slices.Contains(o.Ignore, name) {
			features = append(features, i)
		}
	}
	if len(features) == 0 && label >= 0 {
		return 0, nil, status.InvalidArgumentf("the file has no column but the label %q", names[label])
	}
	return label, features, nil
}

// setLabels sets the labels to numbers, or else to classes.
func (t *Table) setLabels(texts []string) error {
	numbers := make([]float32, len(texts))
	for i, text := range texts {
		v, err := strconv.ParseFloat(text, 32)
		if err != nil || t.Classes != nil {
			numbers = nil
			break
		}
		numbers[i] = float32(v)
	}
	if numbers != nil {
		t.Numbers = numbers
		return nil
	}
	if t.Classes == nil {
		t.Classes = slices.Compact(slices.Sorted(slices.Values(texts)))
	}
	for _, text := range texts {
		i := slices.Index(t.Classes, text)
		if i < 0 {
			return status.InvalidArgumentf("the label %q is none of the classes %q", text, t.Classes)
		}
		t.Labels = append(t.Labels, int32(i))
	}
	return nil
}

// Dataset returns the rows: features, a float32 vector, and labels, an int32 scalar for classes and
// a float32 scalar for numbers. Rows without labels have the features alone.
func (t *Table) Dataset() *Dataset {
	columns := []any{t.Features}
	switch {
	case t.Labels != nil:
		columns = append(columns, t.Labels)
	case t.Numbers != nil:
		columns = append(columns, t.Numbers)
	}
	d, err := FromSlices(columns...)
	if err != nil { // a table that the program has changed
		spec := []Spec{{tensor.Float32, tensor.MakePartial(-1)}, {tensor.Float32, tensor.MakePartial()}}
		return New(spec, unknown, failing(err))
	}
	return d
}
