package elementwise

import "github.com/weft-ml/weft/tensor"

// HasZero reports whether an element of a numeric tensor is zero, of either sign.
func HasZero(t *tensor.Tensor) bool {
	size, part := t.DType().Size(), t.DType().Size()
	if t.DType().IsComplex() {
		part /= 2
	}
	positive := byte(0x7f) // the bits of a part's last byte without the sign
	if t.DType().IsInteger() {
		positive = 0xff
	}
	mem := t.Bytes()
	for at := 0; at < len(mem); at += size {
		var set byte
		for i, b := range mem[at : at+size] {
			if i%part == part-1 {
				b &= positive
			}
			set |= b
		}
		if set == 0 {
			return true
		}
	}
	return false
}
