package nn_test

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weft-ml/weft/data"
	"github.com/weft-ml/weft/nn"
	"github.com/weft-ml/weft/savedmodel/serve"
	"github.com/weft-ml/weft/train"
)

// A saved table takes the columns of a file by name, and predicts what the rows of data.ReadCSV
// give.
func TestSaveTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	text := "width,the color,height,kind\n1,red,2,b\n2,blue,,a\n3,red,4,b\n4,green,5,c\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := data.ReadCSV(path, data.CSV{Label: "kind", OneHot: []string{"the color"}, Missing: data.MissingMean})
	if err != nil {
		t.Fatal(err)
	}
	m := &nn.Model{
		Network: nn.Sequential{&nn.Dense{Units: 3, Activation: nn.Softmax}}, Loss: nn.SparseCategoricalCrossentropy{},
	}
	if _, err := train.Fit(t.Context(), m, table.Dataset().Batch(4), train.FitOptions{Epochs: 30, Optimizer: train.NewAdam(0.1), Seed: 1}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "1")
	if err := m.SaveTable(t.Context(), dir, table.Options); err != nil {
		t.Fatal(err)
	}
	model, err := serve.Load(t.Context(), "local", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	rows, err := model.Signature("serving_default")
	if err != nil {
		t.Fatal(err)
	}
	columns, err := model.Signature(nn.TableSignature)
	if err != nil {
		t.Fatal(err)
	}
	nan := float32(math.NaN())
	got, err := columns.Run(t.Context(), map[string]any{
		"width": []float32{1, 2, 3, 4}, "the color": []string{"red", "blue", "red", "green"}, "height": []float32{2, nan, 4, 5},
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := rows.Run(t.Context(), map[string]any{"inputs": table.Features})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got["outputs"], want["outputs"]) {
		t.Errorf("got %v, want %v", got["outputs"], want["outputs"])
	}
	if !reflect.DeepEqual(got["class"], []string{"b", "a", "b", "c"}) {
		t.Errorf("got the classes %v", got["class"])
	}

	other := table.Options
	other.Features = other.Features[1:]
	for _, c := range []struct {
		columns data.CSV
		want    string
	}{{other, "4 features"}, {data.CSV{}, "Options"}} {
		if err := m.SaveTable(t.Context(), filepath.Join(t.TempDir(), "2"), c.columns); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got the error %v, want %q", err, c.want)
		}
	}
}
