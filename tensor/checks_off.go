//go:build !invariants

package tensor

func checkRefs(int32) {}

func poison([]byte) {}
