package siphash

import "testing"

// TestVectors checks the test vectors of the authors: the key is 00 01 … 0f, and the texts are 00
// 01 … of increasing length.
func TestVectors(t *testing.T) {
	want := []uint64{
		0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d, 0xcf2794e0277187b7, 0x18765564cd99a68d,
		0xcbc9466e58fee3ce, 0xab0200f58b01d137, 0x93f5f5799a932462, 0x9e0082df0ba9e4b0,
	}
	var text []byte
	for n, w := range want {
		if got := Sum64(0x0706050403020100, 0x0f0e0d0c0b0a0908, text); got != w {
			t.Errorf("the hash of %d bytes is %#x, want %#x", n, got, w)
		}
		text = append(text, byte(n))
	}
}
