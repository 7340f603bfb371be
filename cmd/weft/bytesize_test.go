package main

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1073741824": 1 << 30, "512MiB": 512 << 20, "1.5GiB": 3 << 29, "64KiB": 64 << 10, "1TiB": 1 << 40, "0": 0, "-1": -1,
	} {
		var b byteSize
		if err := b.Set(text); err != nil || int64(b) != want {
			t.Errorf("%s: %d, %v; want %d", text, b, err, want)
		}
	}
	for _, text := range []string{"", "x", "1GB", "-2", "-1GiB", "NaN", "Inf", "1e30", "10000000TiB"} {
		var b byteSize
		if err := b.Set(text); err == nil {
			t.Errorf("%q is taken as %d", text, b)
		}
	}
}
