package kernel

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-ml/weft/status"
)

// thing is a resource that counts calls of Close.
type thing struct{ closed atomic.Int32 }

func (*thing) TypeName() string { return "thing" }

func (t *thing) Close() { t.closed.Add(1) }

// other is a resource of another type.
type other struct{}

func (*other) TypeName() string { return "other" }

func wantCode(t *testing.T, err error, code status.Code, text string) {
	t.Helper()
	if status.CodeOf(err) != code || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("got %v: %v, want %v with %q in it", status.CodeOf(err), err, code, text)
	}
}

func TestResources(t *testing.T) {
	r := NewResources("worker")
	_, err := LookupResource[*thing](r, "", "a")
	wantCode(t, err, status.NotFound, "Container worker does not exist. (Could not find resource: worker/a)")
	a, b := &thing{}, &thing{}
	// resources of different types may have the same name
	for _, res := range []Resource{a, &other{}} {
		if err := CreateResource(r, "", "a", res); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, CreateResource(r, "worker", "a", b), status.AlreadyExists, "Resource worker/a/thing")
	if err := CreateResource(r, "own", "a", b); err != nil {
		t.Fatal(err)
	}
	for container, want := range map[string]*thing{"": a, "worker": a, "own": b} {
		if got, err := LookupResource[*thing](r, container, "a"); err != nil || got != want {
			t.Errorf("container %q has %p, %v, want %p", container, got, err, want)
		}
	}
	_, err = LookupResource[*thing](r, "own", "b")
	wantCode(t, err, status.NotFound, "Resource own/b/thing does not exist.")

	wantCode(t, r.DeleteResource("own", "thing", "b"), status.NotFound, "Resource own/b/thing does not exist.")
	wantCode(t, r.DeleteResource("none", "thing", "b"), status.NotFound, "Container none does not exist.")
	if err := r.DeleteResource("", "thing", "a"); err != nil || a.closed.Load() != 1 {
		t.Errorf("deleting a resource: %v, closed %d times", err, a.closed.Load())
	}
	if _, err := LookupResource[*other](r, "", "a"); err != nil {
		t.Error(err)
	}
	r.Clear("own")
	r.Clear("own")
	r.ClearAll()
	if b.closed.Load() != 1 {
		t.Errorf("closed %d times", b.closed.Load())
	}
	_, err = LookupResource[*other](r, "", "a")
	wantCode(t, err, status.NotFound, "Container worker does not exist.")
}

func TestResourcesAreCreatedOnce(t *testing.T) {
	var r Resources
	var created atomic.Int32
	var wg sync.WaitGroup
	got := make([]*thing, 50)
	for i := range got {
		wg.Go(func() {
			var err error
			got[i], err = LookupOrCreateResource(&r, "c", "n", func() (*thing, error) {
				created.Add(1)
				return &thing{}, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Errorf("got different resources %p and %p for one name", got[i], got[0])
		}
	}
	if created.Load() != 1 {
		t.Errorf("create was called %d times", created.Load())
	}
	_, err := LookupOrCreateResource(&r, "c", "bad", func() (*thing, error) { return nil, status.InvalidArgumentf("no") })
	wantCode(t, err, status.InvalidArgument, "no")
	_, err = LookupResource[*thing](&r, "c", "bad")
	wantCode(t, err, status.NotFound, "does not exist")
}
