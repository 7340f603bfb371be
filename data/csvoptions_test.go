package data

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// What the table of the training data says reads other lines to the same features.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	training := write("a.csv", "id,size,color,kind\n1,2,red,b\n2,,blue,a\n3,4,red,b\n4,5,blue,\n")
	table, err := ReadCSV(training, CSV{Label: "kind", Ignore: []string{"id"}, OneHot: []string{"color"}, Missing: MissingMean})
	if err != nil {
		t.Fatal(err)
	}
	if table.Dropped != 1 || len(table.Features) != 3 {
		t.Errorf("%d lines were left out and %d are there, want 1 and 3", table.Dropped, len(table.Features))
	}
	path := filepath.Join(dir, "columns.json")
	if err := table.Options.Save(path); err != nil {
		t.Fatal(err)
	}
	o, err := LoadCSV(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(o, table.Options) {
		t.Errorf("read %+v, want %+v", o, table.Options)
	}
	again, err := ReadCSV(training, o)
	if err != nil || !reflect.DeepEqual(again.Features, table.Features) || !reflect.DeepEqual(again.Labels, table.Labels) {
		t.Errorf("the options read %v %v, %v", again.Features, again.Labels, err)
	}

	o.Unlabeled = true
	for _, text := range []string{"color,size\nblue,7\nred,\n", "size,color,kind\n7,blue,\n,red,\n", "kind,size,color\nc,7,blue\n?,NA,red\n"} {
		got, err := ReadCSV(write("b.csv", text), o)
		want := [][]float32{{7, 1, 0}, {3, 0, 1}}
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if !reflect.DeepEqual(got.Features, want) {
			t.Errorf("%q: features %v of %q", text, got.Features, got.Columns)
		}
		if got.Labels != nil || got.Numbers != nil {
			t.Errorf("%q: labels %v, numbers %v", text, got.Labels, got.Numbers)
		}
		if spec := got.Dataset().Spec(); len(spec) != 1 {
			t.Errorf("%q: elements have %d columns, want 1", text, len(spec))
		}
	}

	row, err := o.Row(map[string]string{"color": "blue", "size": "7"})
	if err != nil || !reflect.DeepEqual(row, table.features(7, "blue")) {
		t.Errorf("Row: got %v, %v", row, err)
	}
	row, err = o.Row(map[string]string{"color": "red"})
	if err != nil || !reflect.DeepEqual(row, table.features(3, "red")) {
		t.Errorf("Row without a size: got %v, %v", row, err)
	}
	strict := o
	strict.Missing = MissingDrops
	for _, c := range []struct {
		o      CSV
		values map[string]string
		want   string
	}{
		{o, map[string]string{"colour": "red"}, `no feature "colour"`},
		{o, map[string]string{"color": "pink"}, `"pink" is none of the texts`},
		{o, map[string]string{"size": "big"}, `column "size": "big" is not a number`},
		{strict, map[string]string{"color": "red"}, `column "size": the value is missing`},
		{CSV{}, nil, "Options"},
	} {
		if _, err := c.o.Row(c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got the error %v, want %q", c.values, err, c.want)
		}
	}
	o.Unlabeled = false
	if _, err := ReadCSV(write("c.csv", "size,color,kind\n1,red,\n"), o); err == nil || !strings.Contains(err.Error(), "CSV.Unlabeled") {
		t.Errorf("lines without labels: got the error %v", err)
	}
	if _, err := LoadCSV(training); err == nil {
		t.Error("a CSV file was read as options")
	}
}

// features returns the row of a size and a color, in the order of the columns.
func (t *Table) features(size float32, color string) []float32 {
	row := make([]float32, len(t.Columns))
	for i, name := range t.Columns {
		switch name {
		case "size":
			row[i] = size
		case "color=" + color:
			row[i] = 1
		}
	}
	return row
}
