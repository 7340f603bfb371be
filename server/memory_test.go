package server

import (
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func TestMemoryIsReleased(t *testing.T) {
	var r reclaimer
	if !r.releaseFrom(0) {
		t.Error("memory is not released")
	}
	if r.releaseFrom(minReclaim) {
		t.Error("it is released though nothing has been allocated")
	}
	x, err := tensor.Alloc(tensor.Uint8, tensor.Shape{2 * minReclaim})
	if err != nil {
		t.Fatal(err)
	}
	x.Release()
	if !r.releaseFrom(minReclaim) {
		t.Error("it is not released after much has been allocated")
	}
	if other := new(reclaimer); !other.releaseFrom(minReclaim) {
		t.Error("another server's release counts as this one's")
	}
}
