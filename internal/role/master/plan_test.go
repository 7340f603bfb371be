package master

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/status"
)

func TestKeepAttrs(t *testing.T) {
	ops, err := graphtext.ParseOps(`
		V() -> (v: dtype) [dtype: type; shape: shape; container: string = ''; n: int = 3; l: list(int) = [1, 2]]`)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graphtext.Parse(ops, `
		a = V() dtype=float shape=[2]
		b = V() dtype=float shape=[2] container="c" n=4 l=[1] _own=3`)
	if err != nil {
		t.Fatal(err)
	}
	def, err := releases{}.defFor(g, cluster.Task{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"dtype", "shape"}, {"_own", "container", "dtype", "l", "n", "shape"}} {
		if got := slices.Sorted(maps.Keys(def.Nodes[i].Attrs)); !slices.Equal(got, want) {
			t.Errorf("%s keeps %v, want %v", def.Nodes[i].Name, got, want)
		}
	}
	if got := len(g.Node("a").Attrs); got != 5 {
		t.Errorf("the graph's own node has lost attributes: %d are left", got)
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	m := &Master{Config: Config{Log: slog.New(slog.DiscardHandler)}}
	doing := func() (err error) {
		defer m.catch(&err, "testing")
		panic(errors.New("at the disco"))
	}
	if err := doing(); status.CodeOf(err) != status.Internal || err.Error() != "panic while testing: at the disco" {
		t.Errorf("got %v", err)
	}
}
