package savedmodel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/status"
)

// Messages without contents take two bytes of a file.
func TestMemoryOfMessages(t *testing.T) {
	const many = 1 << 20
	field := func(number protowire.Number, value string) string {
		return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value))
	}
	for file, text := range map[string]string{
		modelFile:     field(2, field(2, strings.Repeat("\x0a\x00", many))),
		modelTextFile: "meta_graphs{graph_def{" + strings.Repeat("node{}", many) + "}}",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		func() {
			defer membudget.SetLimit(membudget.Limit())
			membudget.SetLimit(128 << 20)
			if _, err := read(dir); status.CodeOf(err) != status.ResourceExhausted {
				t.Errorf("%s: %v", file, err)
			}
		}()
	}
}
