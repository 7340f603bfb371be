package linalg

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func TestEigOfAnotherType(t *testing.T) {
	_, err := kerneltest.NewEnv().MakeNode("eig", "Eig", opdef.Attrs{"T": tensor.Float32, "Tout": tensor.Complex128, "compute_v": true})
	if status.CodeOf(err) != status.InvalidArgument || !strings.Contains(err.Error(), "Invalid output dtype") {
		t.Errorf("values of a type that is too wide: %v", err)
	}
}
