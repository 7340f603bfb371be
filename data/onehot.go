package data

import (
	"slices"

	"github.com/weft-ml/weft/status"
)

// oneHot replaces features with texts by features with numbers.
type oneHot struct {
	names []string            // of the features
	known map[string][]string // texts of columns, sorted; of other files
	zeros bool                // a missing value is 0 for all texts
	texts map[int][]string    // of the lines, by the index of the feature
}

// encoder checks the names of OneHot.
func (o *CSV) encoder(names []string, features []int) (*oneHot, error) {
	e := &oneHot{known: o.Texts, zeros: o.Missing == MissingMean, texts: map[int][]string{}}
	for _, c := range features {
		e.names = append(e.names, names[c])
	}
	for _, name := range o.OneHot {
		i := slices.Index(e.names, name)
		if i < 0 {
			return nil, status.InvalidArgumentf("OneHot has %q, which is not among the features %q", name, e.names)
		}
		e.texts[i] = nil
	}
	return e, nil
}

// has reports whether a feature has texts.
func (e *oneHot) has(i int) bool {
	_, ok := e.texts[i]
	return ok
}

func (e *oneHot) add(i int, text string) { e.texts[i] = append(e.texts[i], text) }

// encode sets the names of the features and replaces the rows.
func (e *oneHot) encode(t *Table) error {
	if len(e.texts) == 0 {
		t.Columns = e.names
		return nil
	}
	t.Texts = map[string][]string{}
	for i, name := range e.names {
		if !e.has(i) {
			t.Columns = append(t.Columns, name)
			continue
		}
		all := e.known[name]
		if all == nil {
			all = slices.Compact(slices.Sorted(slices.Values(e.texts[i])))
			if e.zeros {
				all = slices.DeleteFunc(all, isMissing)
			}
		}
		t.Texts[name] = all
		for _, text := range all {
			t.Columns = append(t.Columns, name+"="+text)
		}
	}
	for line, old := range t.Features {
		row := make([]float32, 0, len(t.Columns))
		for i, name := range e.names {
			if !e.has(i) {
				row = append(row, old[i])
				continue
			}
			at := slices.Index(t.Texts[name], e.texts[i][line])
			missing := at < 0 && e.zeros && isMissing(e.texts[i][line])
			if at < 0 && !missing {
				return status.InvalidArgumentf("row %d of the data, column %q: %q is none of the texts %q",
					line+1, name, e.texts[i][line], t.Texts[name])
			}
			start := len(row)
			row = append(row, make([]float32, len(t.Texts[name]))...)
			if !missing {
				row[start+at] = 1
			}
		}
		t.Features[line] = row
	}
	return nil
}
