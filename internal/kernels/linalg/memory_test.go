package linalg

import (
	"testing"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Copies of a matrix are counted: MatrixSquareRoot and the gradient of Cholesky hold several.
func TestMemoryOfCopies(t *testing.T) {
	m := newMatrix[float64](2048, 2048)
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(64 << 20)
	err := guard.Call("a test", func() error {
		var all [8]matrix[float64]
		for i := range all {
			all[i] = m.clone()
		}
		return nil
	})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
