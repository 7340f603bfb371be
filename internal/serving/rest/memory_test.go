package rest

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// TestMemoryOfClasses writes labels that share one text.
func TestMemoryOfClasses(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(128 << 20)
	row := &servingpb.Classifications{Classes: []*servingpb.Class{{Label: []byte(strings.Repeat("\x01", 16<<10))}}}
	r := &servingpb.ClassificationResult{}
	for range 2000 {
		r.Classifications = append(r.Classifications, row)
	}
	if _, err := classes(r); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
