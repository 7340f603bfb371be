package server

import (
	"testing"

	"github.com/weft-ml/weft/tensor"
)

func TestReserveIsGivenBack(t *testing.T) {
	if !giveBack(0) {
		t.Error("the reserve is not given back")
	}
	if giveBack(muchReserve) {
		t.Error("it is given back though nothing has been allocated")
	}
	x, err := tensor.Alloc(tensor.Uint8, tensor.Shape{2 * muchReserve})
	if err != nil {
		t.Fatal(err)
	}
	x.Release()
	if !giveBack(muchReserve) {
		t.Error("it is not given back after much has been allocated")
	}
}
