package heapprofile

import (
	"runtime"
	"testing"
)

func TestStart(t *testing.T) {
	defer func(rate int) { runtime.MemProfileRate = rate }(runtime.MemProfileRate)
	if Start(); runtime.MemProfileRate != usualRate {
		t.Errorf("the rate is %d", runtime.MemProfileRate)
	}
}
