package function

import (
	"slices"
	"unicode/utf8"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// Python functions exist in a client's process and are identified by a token. A server has none, so
// a node that calls one returns TensorFlow's error for an unknown token. The rest of the graph can
// run.
func init() {
	types := []string{"token: string", "Tin: list(type) >= 0", "Tout: list(type) >= 0"}
	register := func(name, doc string, attrs []string, stateful bool) {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: []string{"input: Tin"}, Out: []string{"output: Tout"}, Attrs: attrs, Stateful: stateful,
			Shape: opdef.UnknownShape,
		}, newPython)
	}
	register("PyFunc", "Calls a Python function. Always fails, because a server has none.", types, true)
	register("PyFuncStateless", "Calls a stateless Python function. Always fails, because a server has none.", types, false)
	register("EagerPyFunc", "Calls a Python function on eager tensors. Always fails, because a server has none.",
		slices.Insert(slices.Clone(types), 1, "is_async: bool = false"), true)
}

func newPython(c *kernel.Construction) (kernel.Kernel, error) {
	token := c.Attrs.String("token")
	return kernel.Func(func(*kernel.Context) error {
		if !utf8.ValidString(token) {
			return status.Internalf("Failed to create python tuple. Please make sure `token` is a well-formed UTF-8 string.")
		}
		return status.InvalidArgumentf("ValueError: Could not find callback with key=%s in the registry.", token)
	}), nil
}
