//go:build !amd64

package parallel

// pause is empty where there is no cheap hint to the core.
func pause() {}
