package elementwise

import "github.com/weft-ml/weft/tensor"

// HasZero reports whether any element of a numeric tensor is zero, positive or negative.
func HasZero(t *tensor.Tensor) bool {
	size, part := t.DType().Size(), t.DType().Size()
	if t.DType().IsComplex() {
		part /= 2
	}
	// Mask that clears the sign bit of a part's last byte.
	positive := byte(0x7f)
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
