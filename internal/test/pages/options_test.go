package pages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
)

const optionsPage = "../../../docs/reference/options.md"

// rewriterOptions are those of RewriterConfig that Weft honors. The page lists no others.
var rewriterOptions = []string{"constant_folding", "dependency_optimization", "disable_meta_optimizer", "loop_optimization"}

// The page of options has a row for each field of the messages that clients send.
func TestOptions(t *testing.T) {
	text, err := os.ReadFile(optionsPage)
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsBelow(string(text))
	for heading, message := range map[string]proto.Message{
		"ConfigProto": &pb.ConfigProto{}, "ConfigProto.Experimental": &pb.ConfigProto_Experimental{}, "GraphOptions": &pb.GraphOptions{},
		"OptimizerOptions": &pb.OptimizerOptions{}, "RPCOptions": &pb.RPCOptions{}, "GPUOptions": &pb.GPUOptions{},
		"RunOptions": &pb.RunOptions{}, "CallableOptions": &pb.CallableOptions{},
	} {
		var want []string
		fields := message.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			want = append(want, string(fields.Get(i).Name()))
		}
		compareRows(t, heading, rows[heading], want)
	}
	compareRows(t, "RewriterConfig", rows["RewriterConfig"], rewriterOptions)
}

// rowsBelow returns the first columns of the tables below each heading. A column may hold several
// names.
func rowsBelow(page string) map[string][]string {
	rows, heading := map[string][]string{}, ""
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			heading = strings.TrimSpace(name)
			continue
		}
		if column, ok := strings.CutPrefix(line, "| "); ok {
			column, _, _ = strings.Cut(column, " | ")
			for _, quoted := range regexp.MustCompile("`[^`]+`").FindAllString(column, -1) {
				rows[heading] = append(rows[heading], strings.Trim(quoted, "`"))
			}
		}
	}
	return rows
}

func compareRows(t *testing.T, heading string, got, want []string) {
	slices.Sort(got)
	slices.Sort(want)
	for _, name := range want {
		if _, found := slices.BinarySearch(got, name); !found {
			t.Errorf("%s: %s is not in the table", heading, name)
		}
	}
	for _, name := range got {
		if _, found := slices.BinarySearch(want, name); !found {
			t.Errorf("%s: %s is in the table, and does not exist", heading, name)
		}
	}
}

// otherVariables are in the table, but not by name in a call of the source.
var otherVariables = []string{"GOMAXPROCS", "TF_CONFIG", "WEFT_BUSY_WAIT", "WEFT_CONFIG", "WEFT_SIMD", "WEFT_TARGET"}

// notForUsers are variables of tests and of generators.
var notForUsers = []string{"WEFT_FAILPOINTS", "WEFT_NVRTC"}

// The page of options has each variable of the environment that the programs read.
func TestEnvironment(t *testing.T) {
	text, err := os.ReadFile(optionsPage)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(otherVariables)
	read := regexp.MustCompile(`(?:os\.Getenv|os\.LookupEnv|dl\.Open)\("([A-Z0-9_]+)"`)
	err = filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || slices.Contains([]string{"test", "interop", "bench", "testdata"}, d.Name())):
			if path != "../../.." {
				return filepath.SkipDir
			}
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range read.FindAllStringSubmatch(string(source), -1) {
				if !slices.Contains(notForUsers, m[1]) {
					want = append(want, m[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	compareRows(t, "Environment", rowsBelow(string(text))["Environment"], slices.Compact(want))
}

// The page of Go packages has each package with a public API.
func TestPackages(t *testing.T) {
	api, err := os.ReadFile("../../../api.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/reference/go.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(api)) {
		name, _, _ := strings.Cut(line, ":")
		link := "[" + name + "](../../" + name + ") |"
		if name == "weft" {
			link = "[weft](../..) |"
		}
		if !seen[name] && !strings.Contains(string(page), link) {
			t.Errorf("package %s is not on the page", name)
		}
		seen[name] = true
	}
	if len(seen) < 20 {
		t.Errorf("api.txt has %d packages", len(seen))
	}
}
