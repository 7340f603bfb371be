package serving_test

import (
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/serving"
	"github.com/weft-ml/weft/internal/test/objecttest"
)

// upload copies a file of the model "lookups", which TensorFlow has written, to a folder of a
// store.
func upload(t *testing.T, dir, name string) {
	t.Helper()
	b, err := os.ReadFile(lookups + "/" + name)
	if err == nil {
		err = fileio.Files{}.Write(fileio.Join(dir, name), b)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// uploadModel copies the model. The file that makes the folder a model comes last.
func uploadModel(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(lookups), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path != "saved_model.pb" {
			upload(t, dir, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	upload(t, dir, "saved_model.pb")
}

// TestRemoteModels serves the versions of a model in a store, and replaces them under load. Every
// fifth request to the store fails.
func TestRemoteModels(t *testing.T) {
	for root, begin := range map[string]func(*testing.T) *objecttest.Store{"s3://bucket": objecttest.S3, "gs://bucket": objecttest.GCS} {
		t.Run(root[:2], func(t *testing.T) {
			store := begin(t)
			base := root + "/models/digits"
			uploadModel(t, base+"/1")
			store.FailEvery(5, objecttest.SlowDown, objecttest.Cut, objecttest.CutAnswer, objecttest.Internal)
			r := start(t, func(c *serving.Config) { c.Models = configOf(base, "") })
			var stop atomic.Bool
			var clients sync.WaitGroup
			for range 2 {
				clients.Go(func() {
					for !stop.Load() {
						if code, body := r.post("/v1/models/m:predict", row); code != 200 {
							t.Errorf("got %d %s", code, body)
							return
						}
					}
				})
			}
			r.available("1")
			upload(t, base+"/2", "variables/variables.index") // a version that is not complete
			uploadModel(t, base+"/3")
			r.available("3")
			if _, body := r.get("/v1/models/m/versions/2"); !strings.Contains(body, "Could not find version 2") {
				t.Errorf("the version that is not complete: %s", body)
			}
			if err := (fileio.Files{}).RemoveAll(base + "/3"); err != nil {
				t.Fatal(err)
			}
			r.available("1")
			var failed atomic.Int64
			store.Fail(func(*http.Request) objecttest.Fault {
				failed.Add(1)
				return objecttest.Internal
			})
			r.until("requests during an outage", func() bool { return failed.Load() > 2 })
			if code, body := r.get("/v1/models/m"); code != 200 || !strings.Contains(body, "AVAILABLE") {
				t.Errorf("during an outage of the store: %d %s", code, body)
			}
			store.Fail(nil)
			stop.Store(true)
			clients.Wait()
		})
	}
}
