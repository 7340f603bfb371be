//go:build gpu

package gpu

import (
	"testing"

	"github.com/weft-ml/weft/internal/gpu/driver"
	_ "github.com/weft-ml/weft/internal/gpu/drivers"
)

// TestRecordedOnDriver runs the recorded cases on the first device that a driver finds.
func TestRecordedOnDriver(t *testing.T) {
	found, err := driver.Open("")
	if err != nil {
		t.Skip(err)
	}
	runRecorded(t, found.Devices[0])
}
