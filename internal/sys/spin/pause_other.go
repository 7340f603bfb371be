//go:build !amd64

package spin

// Pause is empty on architectures without a cheap spin-loop hint.
func Pause() {}
