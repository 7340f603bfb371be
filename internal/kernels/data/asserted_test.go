package data

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestAssertNextAndPrevious(t *testing.T) {
	for _, c := range []struct {
		op     string
		assert []string
		text   string // text of the error
	}{
		{"AssertNextDataset", []string{"Take", "Batch"}, ""},
		{"AssertNextDataset", []string{"Take", "BatchV2", "Root"}, ""},
		{"AssertNextDataset", []string{"Skip"}, "Asserted transformation matching Skip at offset 0 but encountered Take transformation instead."},
		{"AssertNextDataset", []string{"Take", "Batch", "Root", "More"}, "Asserted next 4 transformations but encountered only 3."},
		{"ExperimentalAssertNextDataset", []string{"Repeat"}, "Asserted transformation matching Repeat"},
		{"AssertPrevDataset", []string{`name: "SkipDataset"`, `name: "RangeDataset" attr { key: "replicate_on_split" value { b: false } }`}, ""},
		{"AssertPrevDataset", []string{`name: "TakeDataset"`}, "Failure checking transformations at offset 0: Asserted transformation matching 'TakeDataset', but found 'SkipDataset'."},
		{"AssertPrevDataset", []string{`name: "SkipDataset" attr { key: "a" value { b: true } }`}, "but found no such attribute defined."},
		{"AssertPrevDataset", []string{`name: "SkipDataset" attr { key: "metadata" value { s: "m" } }`}, "Asserted attribute 'metadata' having a value of"},
		{"AssertPrevDataset", []string{`name: "SkipDataset"`, `name: "RangeDataset"`, `name: "More"`}, "Asserted previous 3 transformations but encountered only 2."},
		{"AssertPrevDataset", []string{`name:`}, "Couldn't parse transformation"},
	} {
		b := newBench(t)
		d := b.make(c.op, b.make("SkipDataset", b.count(0, 5), num(1)), tensor.Vector(c.assert...))
		d = b.make("BatchDatasetV2", b.make("TakeDataset", d, num(2)), num(2), tensor.Scalar(false))
		it, err := b.run("it", "AnonymousIteratorV3", b.attrs())
		if err == nil {
			_, err = b.run("make", "MakeIterator", nil, d, it[0])
		}
		switch {
		case c.text == "" && err != nil:
			t.Errorf("%s %q: %v", c.op, c.assert, err)
		case c.text != "" && (status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%s %q: %v", c.op, c.assert, err)
		}
	}
}
