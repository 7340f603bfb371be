package httpapi

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write docs/reference/openapi.json")

// TestDocument compares the committed description with that of the table, and checks its
// references.
func TestDocument(t *testing.T) {
	got, err := (&Handler{Version: "1"}).API().Document()
	if err != nil {
		t.Fatal(err)
	}
	const path = "../../../docs/reference/openapi.json"
	if *rewrite {
		if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || strings.TrimSuffix(string(want), "\n") != string(got) {
		t.Errorf("%s is not current: run the test with -rewrite (%v)", path, err)
	}
	var doc struct {
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(got), `"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if doc.Components.Schemas[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
	if len(doc.Components.Schemas) < 40 {
		t.Errorf("got %d schemas", len(doc.Components.Schemas))
	}
}
