package trust_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/weft-ml/weft/internal/trust"
)

var rewrite = flag.Bool("rewrite", false, "write the page instead of comparing it")

const (
	page     = "../../docs/reference/access.md"
	pageHead = `# Access

What the holders of certificates may call on a task with TLS. This page is generated from the table
in ` + "`internal/trust`" + `; ` + "`weft auth table`" + ` prints the same. See [security](../guides/security.md).

`
)

// TestPage compares the page of the documentation with the table.
func TestPage(t *testing.T) {
	var want bytes.Buffer
	want.WriteString(pageHead)
	if err := trust.WriteTable(&want, true); err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(page, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s differs from the table: run the test with -rewrite", page)
	}
}
