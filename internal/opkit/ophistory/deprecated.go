package ophistory

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/weft-ml/weft/status"
)

//go:embed deprecated.txt
var deprecatedText string

// deprecation tells since when graphs must not have an operation.
type deprecation struct {
	version     int // of the graph
	explanation string
}

var deprecated = sync.OnceValue(func() map[string]deprecation {
	all := map[string]deprecation{}
	for line := range strings.Lines(deprecatedText) {
		name, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, explanation, _ := strings.Cut(rest, " ")
		version, err := strconv.Atoi(number)
		if err != nil || explanation == "" {
			panic("ophistory: malformed line: " + line)
		}
		//sizedmake:ok lines of a constant
		all[name] = deprecation{version, explanation}
	}
	return all
})

// CheckAvailable returns an Unimplemented error if an operation was removed before the version of a
// graph. The version is that of the graph's producer. Graphs of older programs may have the
// operation.
func CheckAvailable(op string, version int) error {
	d, ok := deprecated()[op]
	if !ok || version < d.version {
		return nil
	}
	return status.Unimplementedf("Op %s is not available in GraphDef version %d. It has been removed in version %d. %s.",
		op, version, d.version, d.explanation)
}
