//go:build !linux

package grpch2

const canLook = false

func arrived(uintptr) bool { return true }
