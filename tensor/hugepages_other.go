//go:build !linux

package tensor

// adviseHuge would ask for huge pages.
func adviseHuge([]byte) {}
