package objectstore_test

import (
	"runtime"
	"testing"

	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/test/objecttest"
	"github.com/weft-ml/weft/status"
)

// Objects that are open take memory for what is read ahead, or not sent yet.
func TestMemoryOfOpenObjects(t *testing.T) {
	objecttest.S3(t)
	n := objectstore.Name{Scheme: objectstore.S3, Bucket: objecttest.Bucket, Key: "k"}
	part := random(1 << 20)
	write(t, n, part)
	defer membudget.SetLimit(membudget.Limit())
	for name, open := range map[string]func() (any, error){
		"readers": func() (any, error) {
			r, err := objectstore.Open(t.Context(), n)
			if err == nil {
				_, err = r.ReadAt(t.Context(), make([]byte, 1), 0)
			}
			return r, err
		},
		"writers": func() (any, error) {
			w, err := objectstore.Create(n)
			if err == nil {
				_, err = w.Write(t.Context(), part)
			}
			return w, err
		},
	} {
		membudget.SetLimit(64 << 20)
		var all []any
		var err error
		for len(all) < 150 && err == nil {
			var one any
			one, err = open()
			all = append(all, one)
		}
		if status.CodeOf(err) != status.ResourceExhausted {
			t.Errorf("after %d %s: %v", len(all), name, err)
		}
		runtime.KeepAlive(all)
	}
}
