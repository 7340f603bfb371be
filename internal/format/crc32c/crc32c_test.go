package crc32c

import "testing"

// TestKnown compares with values of other implementations of the format.
func TestKnown(t *testing.T) {
	if got := Sum([]byte("123456789")); got != 0xe3069283 {
		t.Errorf("checksum is %#x", got)
	}
	if got := Update(Sum([]byte("1234")), []byte("56789")); got != 0xe3069283 {
		t.Errorf("checksum of two parts is %#x", got)
	}
	if got := Mask(Sum([]byte("abc"))); got != 0x21f1576e {
		t.Errorf("masked checksum is %#x", got)
	}
	for _, crc := range []uint32{0, 1, 0xffffffff, 0xa282ead8, 0xe3069283} {
		if got := Unmask(Mask(crc)); got != crc {
			t.Errorf("Unmask(Mask(%#x)) is %#x", crc, got)
		}
		if Mask(crc) == crc {
			t.Errorf("%#x is not masked", crc)
		}
	}
}
