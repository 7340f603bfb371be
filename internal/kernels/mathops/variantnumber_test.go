package mathops

import (
	"fmt"
	"testing"

	"github.com/weft-ml/weft/tensor"
)

// TestVariantNumbers compares with the bytes and texts of TensorFlow 2.21.0.
func TestVariantNumbers(t *testing.T) {
	for _, c := range []struct {
		name, bytes, text, twice, zero string
	}{
		{"int", "\x05\x00\x00\x00", "5", "10", "0"},
		{"float", "\xab\xaa\xaa>", "0.333333", "0.666667", "0"},
		{"float", "\xf9\x02\x15P", "1e+10", "2e+10", "0"},
		{"double", "\x00\x00\x00\x00\x00\x00\x14@", "5", "10", "0"},
		{"bool", "\x01", "1", "1", "0"},
		{"bool", "\x00", "0", "0", "0"},
	} {
		v, err := tensor.EncodedVariant{TypeName: c.name, Metadata: []byte(c.bytes)}.Decode()
		if err != nil {
			t.Fatal(err)
		}
		number := v.(interface {
			tensor.VariantEncoder
			adder
			ZerosLike() (any, error)
		})
		e, err := number.EncodeVariant()
		if err != nil || e.TypeName != c.name || string(e.Metadata) != c.bytes {
			t.Errorf("%s %q travels as %s %q, %v", c.name, c.bytes, e.TypeName, e.Metadata, err)
		}
		twice, err := number.AddVariant(v)
		if err != nil {
			t.Fatal(err)
		}
		zero, err := number.ZerosLike()
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(v, " ", twice, " ", zero); got != c.text+" "+c.twice+" "+c.zero {
			t.Errorf("%s %q: %s", c.name, c.bytes, got)
		}
		if _, err := number.AddVariant("else"); err == nil {
			t.Errorf("%s: a number and something else were added", c.name)
		}
	}
	for _, bytes := range []string{"", "ab", "abcdefgh"} {
		if _, err := (tensor.EncodedVariant{TypeName: "int", Metadata: []byte(bytes)}).Decode(); err == nil {
			t.Errorf("an int of %d bytes was decoded", len(bytes))
		}
	}
}
