package oip

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/guard"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestMemoryOfAnswers writes a tensor whose strings share one text, as bytes and as JSON.
func TestMemoryOfAnswers(t *testing.T) {
	old := membudget.Limit()
	defer membudget.SetLimit(old)
	membudget.SetLimit(256 << 20)
	vals, text := make([]string, 1<<20), strings.Repeat("x", 500)
	for i := range vals {
		vals[i] = text
	}
	outs := []output{{"y", tensor.Vector(vals...)}}
	for _, binary := range []bool{false, true} {
		q := &jsonRequest{allBinary: binary}
		if _, err := q.respond(1, outs); status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("binary %v: got %v", binary, err)
		}
	}
}

// TestMemoryOfTexts reads a string of a message, which is a copy.
func TestMemoryOfTexts(t *testing.T) {
	contents := &servingpb.InferTensorContents{BytesContents: [][]byte{make([]byte, 32<<20)}}
	defer membudget.SetLimit(membudget.Limit())
	membudget.SetLimit(60 << 20)
	err := guard.Call("typed", func() error {
		_, err := typed("x", tensor.String, tensor.Shape{1}, contents)
		return err
	})
	if status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}
