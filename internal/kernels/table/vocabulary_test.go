package table

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// FuzzVocabulary reads arbitrary files. Lines must be counted correctly, and malformed files must
// return InvalidArgument.
func FuzzVocabulary(f *testing.F) {
	for _, text := range []string{"a\t1\nb\t2\n", "a\r\n\n", "\t\t", "x\ty", "0x10\t9999999999999999999\n"} {
		f.Add([]byte(text), 0, 1, -1)
	}
	f.Fuzz(func(t *testing.T, text []byte, key, value, size int) {
		v := &vocabulary{key: max(wholeLine, min(key, 5)), value: max(wholeLine, min(value, 5)), size: max(-1, size), delimiter: "\t"}
		keys, err := newCells(v.key, tensor.String, 0)
		if err != nil {
			t.Fatal(err)
		}
		values, err := newCells(v.value, tensor.Int64, 0)
		if err != nil {
			t.Fatal(err)
		}
		r := &reader{vocabulary: v, path: "file", in: bufio.NewReader(bytes.NewReader(text)), keys: keys, values: values}
		for err == nil {
			err = r.next()
		}
		if !errors.Is(err, io.EOF) {
			if status.CodeOf(err) != status.InvalidArgument {
				t.Fatal(err)
			}
			return
		}
		k, val := keys.tensor(), values.tensor()
		if int64(k.NumElements()) != r.lines || int64(val.NumElements()) != r.lines || v.size >= 0 && r.lines != int64(v.size) {
			t.Errorf("%d lines returned %v and %v", r.lines, k.Shape(), val.Shape())
		}
	})
}
