//go:build !linux

package tensor

// adviseHuge does nothing: huge pages are requested on Linux only.
func adviseHuge([]byte) {}
