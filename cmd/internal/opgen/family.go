package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/weft-ml/weft/kernel"
)

// familyDir is the folder of the families of operations, below the root of the module.
const familyDir = "internal/kernels"

// devicesDir is the folder below familyDir that is no family: it registers kernels of GPU devices
// for the operations of all families.
const devicesDir = "gpu"

// families finds the family of an operation: the package below familyDir that registers it. The
// registry does not record the family, because that would take time at each start of a program. The
// family is the package of the functions of the operation, or else the package whose source
// contains the name of the operation.
type families struct {
	registered map[string][]string // families whose source registers a name, by name
	mentioned  map[string][]string // families with a name as a string, by name
}

var (
	registration = regexp.MustCompile(`(?:Name:\s*|[rR]egister\w*\(\s*|[sS]tage\(\s*)"(\w+)"`)
	literal      = regexp.MustCompile(`"(\w+)"`)
)

func readFamilies(root string) (*families, error) {
	dirs, err := os.ReadDir(filepath.Join(root, familyDir))
	if err != nil {
		return nil, err
	}
	f := &families{registered: map[string][]string{}, mentioned: map[string][]string{}}
	for _, d := range dirs {
		if d.Name() == devicesDir {
			continue
		}
		files, err := filepath.Glob(filepath.Join(root, familyDir, d.Name(), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			note(f.registered, registration, src, d.Name())
			note(f.mentioned, literal, src, d.Name())
		}
	}
	return f, nil
}

// note adds the family to the entry of each name that the pattern captures.
func note(index map[string][]string, pattern *regexp.Regexp, src []byte, family string) {
	for _, m := range pattern.FindAllSubmatch(src, -1) {
		name := string(m[1])
		if !slices.Contains(index[name], family) {
			index[name] = append(index[name], family)
		}
	}
}

// of returns the family of an operation.
func (f *families) of(e entry) (string, error) {
	if family := familyOfFunc(reflect.ValueOf(e.op.Shape)); family != "" {
		return family, nil
	}
	for _, impl := range kernel.Default.Kernels(e.op.Name) {
		if family := familyOfFunc(reflect.ValueOf(impl.New)); family != "" && family != devicesDir {
			return family, nil
		}
	}
	for name := e.op.Name; name != ""; name = shorter(name) {
		for _, found := range [][]string{f.registered[name], f.mentioned[name]} {
			if len(found) == 1 {
				return found[0], nil
			}
		}
	}
	return "", fmt.Errorf("%s: no family below %s mentions the operation", e.op.Name, familyDir)
}

var affixes = regexp.MustCompile(`^(Experimental|Anonymous|Ordered|Resource|Sparse|Stateless|Apply|Ref)|(V\d|[123]D|Grad|GradGrad)$`)

// shorter returns the name without one of the prefixes and suffixes of the names of variants; "" if
// it has none.
func shorter(name string) string {
	cut := affixes.FindStringIndex(name)
	if cut == nil {
		return ""
	}
	return name[:cut[0]] + name[cut[1]:]
}

// familyOfFunc returns the family that contains a function; "" if none does.
func familyOfFunc(fn reflect.Value) string {
	if fn.Kind() != reflect.Func || fn.IsNil() {
		return ""
	}
	name := runtime.FuncForPC(fn.Pointer()).Name()
	_, rest, ok := strings.Cut(name, "/"+familyDir+"/")
	if !ok {
		return ""
	}
	family, _, _ := strings.Cut(rest, ".")
	return family
}
